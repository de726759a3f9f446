internal import CacheEngine
internal import HTTPCaching

/// A request that was found fit to be sent, in the pieces libcurl takes.
struct PreparedRequest: Sendable {
    /// What follows the head.
    enum Content: Sendable {
        case none
        case chunk(ByteChunk)
        case stream(BodyStream, count: Int?)
    }

    let method: Method
    let connectionURL: String
    let requestTarget: String
    let isSecure: Bool
    /// Field lines as libcurl takes them, each ended by a NUL.
    let lines: [[UInt8]]
    let content: Content
    let headTimeoutSeconds: Double?

    /// Whether sending it twice does no more than sending it once (RFC 9110 §9.2.2).
    var isIdempotent: Bool {
        switch method.kind {
        case .get, .head, .put, .delete, .options, .trace, .query: true
        case .post, .patch, .connect, .other: false
        }
    }

    init(_ request: OriginRequest, isProxied: Bool) throws(CacheError) {
        guard FieldSection.isValidName(request.method.name), request.method.kind != .connect else {
            throw CacheError(.requestInvalid, detail: "The method cannot be sent")
        }
        let target = try RequestTarget(request.url, method: request.method)
        method = request.method
        connectionURL = target.connectionURL
        isSecure = target.scheme == .https
        requestTarget = isProxied && !isSecure ? target.absoluteForm : target.originForm
        lines = Self.lines(request.fields)
        content = try Self.content(of: request)
        headTimeoutSeconds = request.timeoutSeconds
    }

    private static func content(of request: OriginRequest) throws(CacheError) -> Content {
        // libcurl makes a PUT of a HEAD with content, which has no meaning there (RFC 9110 §9.3.2).
        if request.method.kind == .head { return .none }
        guard let body = request.body else {
            // Servers answer a POST that announces no length with 411 (RFC 9110 §8.6).
            switch request.method.kind {
            case .post, .put, .patch: return .chunk(.empty)
            default: return .none
            }
        }
        if let chunk = body.availableChunk { return .chunk(chunk) }
        if let count = body.count { return .stream(body, count: count) }
        guard let announced = request.fields["Content-Length"] else {
            return .stream(body, count: nil)
        }
        guard let count = Int(announced), count >= 0 else {
            throw CacheError(.requestInvalid, detail: "Content-Length is no length")
        }
        return .stream(body, count: count)
    }

    /// The lines to send: those of the connection and the framing are libcurl's to write.
    private static func lines(_ fields: HeaderFields) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        fields.forEachLine { name, value in
            guard !isOwnedByConnection(name) else { return }
            var line: [UInt8] = []
            line.reserveCapacity(name.count + value.count + 3)
            line.append(contentsOf: name)
            // libcurl's way to say that the value is empty, and not that the line is unwanted.
            line.append(UInt8(ascii: value.isEmpty ? ";" : ":"))
            if !value.isEmpty {
                line.append(UInt8(ascii: " "))
                line.append(contentsOf: value)
            }
            line.append(0)
            lines.append(line)
        }
        if !fields.contains("Accept") { lines.append([UInt8]("Accept:\0".utf8)) }
        lines.append([UInt8]("Expect:\0".utf8))
        return lines
    }

    private static func isOwnedByConnection(_ name: UnsafeRawBufferPointer) -> Bool {
        connectionFields.contains(String(decoding: name, as: UTF8.self).lowercased())
    }

    private static let connectionFields: Set<String> = [
        "connection", "content-length", "expect", "http2-settings", "keep-alive",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]
}
