/// One version of the resource, in one language, for one user.
///
/// Its content is a sequence of pairs, each its own letter and a digit, so that every slice of at
/// least two bytes identifies its representation.
struct Representation: Hashable, Sendable {
    let content: String
    let tag: String?
    let modifiedSeconds: Int64?

    /// The validators that the origin sends with a representation.
    enum Validators: CaseIterable, Sendable {
        case both, tagOnly, weakTagOnly, dateOnly, none
    }

    init(version: Int, _ asked: Asked, varies: Bool, _ validators: Validators) {
        let isGerman = varies && asked.language == "de"
        let letters = asked.isAuthorized ? "pqrst" : isGerman ? "uvwxy" : "abcde"
        let letter = letters.dropFirst(version - 1).prefix(1)
        // Later versions are longer, so that lengths differ too.
        let digits = 0..<(7 + version)
        content = digits.map { "\(letter)\($0)" }.joined()
        switch validators {
        case .both, .tagOnly: tag = "\"\(letter)\""
        case .weakTagOnly: tag = "W/\"\(letter)\""
        case .dateOnly, .none: tag = nil
        }
        switch validators {
        case .both, .dateOnly: modifiedSeconds = Moment.modified(version: version)
        case .tagOnly, .weakTagOnly, .none: modifiedSeconds = nil
        }
    }

    func slice(_ range: Range<Int>) -> String {
        let bytes = Array(content.utf8)[range]
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The times that the origin and its clients use, and their form in fields.
enum Moment {
    static let start: Int64 = Stage.startSeconds
    /// Earlier than every version.
    static let early = start - 20_000

    /// The first version is older than the stored response; later versions are newer.
    static func modified(version: Int) -> Int64 {
        version == 1 ? start - 10_000 : start + 3 + Int64(version)
    }

    static let versionsMax = 5

    private static let texts: [Int64: String] = {
        var texts: [Int64: String] = [:]
        for seconds in [early] + (1...versionsMax).map(modified) {
            texts[seconds] = Stage.date(Int(seconds - start))
        }
        return texts
    }()

    private static let moments = Dictionary(uniqueKeysWithValues: texts.map { ($1, $0) })

    static func text(_ seconds: Int64) -> String {
        texts[seconds] ?? Stage.date(Int(seconds - start))
    }

    static func parse(_ text: String) -> Int64? { moments[text] }
}
