import CacheEngine

/// The parts of a response in which two correct servers must agree: status, content and validators.
struct Told: Hashable, Sendable {
    /// No response, or one that broke off.
    ///
    /// A gateway turns it into a 502 or 504.
    static let nothing = Told(status: 0)
    static let gatewayTimeout = Told(status: 504)

    let status: Int
    private(set) var content = ""
    private(set) var tag: String?
    private(set) var modified: String?
    private(set) var contentRange: String?

    private init(status: Int) { self.status = status }

    init(
        status: Int,
        content: String,
        tag: String?,
        modified: String?,
        contentRange: String?
    ) {
        self.status = status
        switch status {
        case 200, 206:
            self.content = content
            self.tag = tag
            self.modified = modified
            self.contentRange = contentRange
        // RFC 9110 §15.4.5: Last-Modified may be left out if there is a tag.
        case 304: self.tag = tag
        // The text of an error response is up to the server.
        default: break
        }
    }

    init(_ reply: Reply) {
        guard reply.status != Reply.cut, !reply.isTorn || reply.isBodiless else {
            self = .nothing
            return
        }
        self.init(
            status: reply.status,
            content: reply.isBodiless ? "" : reply.content,
            tag: reply.representation?.tag,
            modified: reply.representation?.modifiedSeconds.map(Moment.text),
            contentRange: reply.contentRange
        )
    }

    init(_ response: CacheResponse, content: String) {
        self.init(
            status: response.status,
            content: content,
            tag: response.fields["ETag"],
            modified: response.fields["Last-Modified"],
            contentRange: response.fields["Content-Range"]
        )
    }
}

extension Told: CustomStringConvertible {
    var description: String {
        if status == 0 { return "nothing" }
        let parts = [contentRange, content.isEmpty ? nil : content, tag].compactMap { $0 }
        return ([String(status)] + parts).joined(separator: " ")
    }
}
