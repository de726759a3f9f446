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

    /// A page of all or, half the time, one of the few where everything meets.
    init(using random: inout SeededRandom) {
        let count = Bool.random(using: &random) ? Kind.allCases.count : Self.count
        number = Int.random(in: 0..<count, using: &random)
    }

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
