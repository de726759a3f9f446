import CacheTestSupport

/// One request of a client of the soak.
struct SoakRequest: Sendable {
    enum Kind { case whole, part, head, condition, reload, change }

    let page: SoakPage
    let kind: Kind
    let form: String
    /// The oldest version that may answer it, and that a client may have.
    var oldest = 0
    /// The oldest version that may answer it as fresh.
    var oldestFresh = 0
    /// The oldest version that the origin may send.
    var newest = 0
    /// The first byte of a part.
    private let start: Int

    init(using random: inout SeededRandom) {
        page = SoakPage(using: &random)
        form = SoakPage.forms.randomElement(using: &random) ?? ""
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<3: kind = .part
        case 3: kind = .head
        case 4: kind = .condition
        case 5: kind = .reload
        case 6: kind = .change
        default: kind = .whole
        }
        start = Int.random(in: 1..<4, using: &random)
    }

    /// The name of what is stored for it.
    var variant: String { "\(page.number) \(page.kind == .varied ? form : "")" }

    var isHead: Bool { kind == .head }

    var text: String {
        var lines = ["\(method) \(page.target) HTTP/1.1", "Host: x"]
        if !form.isEmpty { lines.append("X-Form: \(form)") }
        switch kind {
        case .whole, .head: break
        case .part: lines.append("Range: bytes=\(start)-")
        case .condition: lines.append("If-None-Match: \"\(oldest)\"")
        case .reload: lines.append("Cache-Control: no-cache")
        case .change: lines.append("Content-Length: 4")
        }
        return lines.map { $0 + "\r\n" }.joined() + "\r\n" + (kind == .change ? "next" : "")
    }

    private var method: String {
        switch kind {
        case .head: "HEAD"
        case .change: "POST"
        case .whole, .part, .condition, .reload: "GET"
        }
    }

    /// What is wrong with a complete response; `nil` if nothing is.
    func fault(of response: WireResponse) -> String? {
        switch response.status {
        case 502, 503, 504: return nil
        case 200, 206, 304: break
        default: return "status \(response.status)"
        }
        guard let version = response.version else {
            return "no version: \(response.text.prefix(40))"
        }
        // A reload may get the response that the origin is about to send to another request, or, in
        // the place of a failure, a stored one.
        var least = response.isFresh ? max(oldest, oldestFresh) : oldest
        if kind == .reload, response.isOfOwnRequest { least = newest }
        if version < least { return "version \(version) for \(kind), \(least) is the oldest" }
        if kind == .reload, response.isHit { return "a hit for a reload" }
        let body = page.body(version, form: form)
        switch (response.status, kind) {
        case (304, .condition):
            return version == oldest ? nil : "304 of \(version) for a condition on \(oldest)"
        case (206, .part):
            let range = "bytes \(start)-\(body.utf8.count - 1)/\(body.utf8.count)"
            if response["Content-Range"] != range { return "not \(range)" }
            return response.text == body.dropFirst(start) ? nil : wrongBody(response)
        case (200, .head):
            let length = response["Content-Length"]
            return length.map { $0 == "\(body.utf8.count)" } ?? true ? nil : "wrong length"
        case (200, .whole), (200, .part), (200, .condition), (200, .reload):
            return response.text == body ? nil : wrongBody(response)
        case (200, .change): return response.text.isEmpty ? nil : wrongBody(response)
        default: return "\(response.status) of another request"
        }
    }

    private func wrongBody(_ response: WireResponse) -> String {
        "wrong body: \(response.text.prefix(40))"
    }
}

extension WireResponse {
    /// The version of the page that the response is of, or that it has made.
    var version: Int? { self["ETag"].flatMap { Int($0.dropFirst().dropLast()) } }

    var isFresh: Bool { self["Cache-Status"]?.contains("; ttl=-") != true }

    /// Whether the origin sent the response to this request, and not to one before it.
    fileprivate var isOfOwnRequest: Bool {
        let status = self["Cache-Status"] ?? ""
        return status.contains("; fwd-status=200") && !status.contains("; collapsed")
    }
}
