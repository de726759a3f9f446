import CacheTestSupport

/// One of the pages of the soak's origin.
///
/// Every part of its body names the page, the version and the form.
struct SoakPage: Sendable {
    /// The features of HTTP that a page uses.
    enum Kind: CaseIterable { case plain, varied, large, uncacheable }

    static let count = 60
    static let forms = ["", "a", "b"]

    let number: Int

    var kind: Kind { Kind.allCases[number % Kind.allCases.count] }
    var target: String { "/k/\(number)" }
    var tag: String { "page-\(number)" }

    init(_ number: Int) { self.number = number }

    init?(target: String) {
        guard let number = Int(target.dropFirst(3)), number < Self.count else { return nil }
        self.init(number)
    }

    func body(_ version: Int, form: String) -> String {
        let parts = 1 + number * number * (kind == .large ? 30 : 3)
        let form = kind == .varied ? form : ""
        return String(repeating: "\(number):\(version):\(form);", count: parts)
    }

    func fields(_ version: Int) -> [String] {
        var fields = ["ETag: \"\(version)\"", "Cache-Tag: \(tag)"]
        if kind == .varied { fields.append("Vary: X-Form") }
        fields.append(
            kind == .uncacheable
                ? "Cache-Control: no-store" : "Cache-Control: max-age=3, stale-while-revalidate=2"
        )
        return fields
    }
}

/// One request of a client of the soak.
struct SoakRequest: Sendable {
    enum Kind { case whole, part, head, condition }

    let page: SoakPage
    let kind: Kind
    let form: String
    /// The first byte that is asked for, or the version that the client has.
    let detail: Int

    init(oldest: [Int], using random: inout SeededRandom) {
        let numbers = (0..<2).map { _ in Int.random(in: 0..<SoakPage.count, using: &random) }
        page = SoakPage(min(numbers[0], numbers[1]))
        form = SoakPage.forms.randomElement(using: &random) ?? ""
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<3: (kind, detail) = (.part, Int.random(in: 1..<4, using: &random))
        case 3: (kind, detail) = (.head, 0)
        case 4: (kind, detail) = (.condition, oldest[page.number])
        default: (kind, detail) = (.whole, 0)
        }
    }

    var text: String {
        var lines = ["\(kind == .head ? "HEAD" : "GET") \(page.target) HTTP/1.1", "Host: x"]
        if !form.isEmpty { lines.append("X-Form: \(form)") }
        switch kind {
        case .whole, .head: break
        case .part: lines.append("Range: bytes=\(detail)-")
        case .condition: lines.append("If-None-Match: \"\(detail)\"")
        }
        return lines.map { $0 + "\r\n" }.joined() + "\r\n"
    }

    /// What is wrong with a complete response; `nil` if nothing is.
    func fault(of response: WireResponse, oldest: Int) -> String? {
        switch response.status {
        case 502, 503, 504: return nil
        case 200, 206, 304: break
        default: return "status \(response.status)"
        }
        guard let version = response["ETag"].flatMap({ Int($0.dropFirst().dropLast()) }) else {
            return "no version: \(response.text.prefix(40))"
        }
        if version < oldest { return "version \(version) after purge at \(oldest)" }
        let body = page.body(version, form: form)
        switch (response.status, kind) {
        case (304, .condition):
            return version == detail ? nil : "304 of \(version) for a condition on \(detail)"
        case (206, .part):
            let range = "bytes \(detail)-\(body.utf8.count - 1)/\(body.utf8.count)"
            if response["Content-Range"] != range { return "not \(range)" }
            return response.text == body.dropFirst(detail) ? nil : wrongBody(response)
        case (200, .head):
            let length = response["Content-Length"]
            return length.map { $0 == "\(body.utf8.count)" } ?? true ? nil : "wrong length"
        case (200, .whole), (200, .part), (200, .condition):
            return response.text == body ? nil : wrongBody(response)
        default: return "\(response.status) of another request"
        }
    }

    private func wrongBody(_ response: WireResponse) -> String {
        "wrong body: \(response.text.prefix(40))"
    }
}
