import CacheEngine
import CacheEngineRedis

/// How the values of options are read.
enum ConfigurationValue {
    /// `4096`, `64K`, `256M`, `20G`, with or without `B` or `iB` after the letter.
    static func size(_ text: String) throws(ValueFault) -> ByteCount {
        let fault = ValueFault(
            "`\(text)` is not a size",
            give: "a number above 0, as 4096, 64K or 2G"
        )
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard !digits.isEmpty, digits.contains(where: { $0 != "0" }) else { throw fault }
        let scale: Int
        switch text.dropFirst(digits.count).lowercased() {
        case "", "b": scale = 1
        case "k", "kb", "kib": scale = 1 << 10
        case "m", "mb", "mib": scale = 1 << 20
        case "g", "gb", "gib": scale = 1 << 30
        case "t", "tb", "tib": scale = 1 << 40
        default: throw fault
        }
        guard let count = Int(digits),
            case let (bytes, overflows) = count.multipliedReportingOverflow(by: scale), !overflows
        else {
            throw ValueFault("`\(text)` is too large", give: "at most \(Int.max >> 40)T")
        }
        return .bytes(bytes)
    }

    /// The least memory of a cache: a tenth of it is its largest entry.
    private static let memoryBytesMin = 1 << 20

    /// A size of the memory.
    static func memory(_ text: String) throws(ValueFault) -> ByteCount {
        let memory = try size(text)
        guard memory.bytes >= memoryBytesMin else {
            throw ValueFault("`\(text)` is too little memory for a cache", give: "at least 1M")
        }
        return memory
    }

    static func count(
        in range: ClosedRange<Int>
    ) -> @Sendable (String) throws(ValueFault) -> Int {
        { (text: String) throws(ValueFault) -> Int in
            guard let count = Int(text), range.contains(count) else {
                throw ValueFault(
                    "`\(text)` is not a whole number in the range",
                    give: "\(range.lowerBound) to \(range.upperBound)"
                )
            }
            return count
        }
    }

    /// A whole number of seconds, up to a year.
    static func wholeSeconds(_ text: String) throws(ValueFault) -> Duration {
        .seconds(try count(in: 0...31_536_000)(text))
    }

    /// Seconds of a limit, with or without a fraction: at least a millisecond, which is the precision
    /// of the limits.
    static func seconds(_ text: String) throws(ValueFault) -> Duration {
        let time = try anySeconds(text)
        guard time >= .milliseconds(1) else {
            throw ValueFault("`\(text)` is too short", give: "at least 0.001")
        }
        return time
    }

    /// Seconds, with or without a fraction; a very short time is rounded to none.
    static func anySeconds(_ text: String) throws(ValueFault) -> Duration {
        guard let seconds = Double(text), seconds > 0, seconds <= 86_400 else {
            throw ValueFault("`\(text)` is not a time", give: "seconds above 0, at most 86400")
        }
        // No binary fraction: 2.3 seconds are 2,300 whole milliseconds.
        return .nanoseconds(Int64((seconds * 1e9).rounded()))
    }

    /// One of the names of `Choice`.
    static func choice<Choice: RawRepresentable & CaseIterable>(
        _ text: String
    ) throws(ValueFault) -> Choice where Choice.RawValue == String {
        if let choice = Choice(rawValue: text) { return choice }
        throw unknown(text, Choice.allCases.map(\.rawValue))
    }

    /// One of the words of a table.
    static func choice<Choice: Sendable>(
        _ words: KeyValuePairs<String, Choice>
    ) -> @Sendable (String) throws(ValueFault) -> Choice {
        { (text: String) throws(ValueFault) -> Choice in
            guard let row = words.first(where: { $0.key == text }) else {
                throw unknown(text, words.map(\.key))
            }
            return row.value
        }
    }

    private static func unknown(_ text: String, _ words: [String]) -> ValueFault {
        let list = words.dropLast().joined(separator: ", ") + " or " + (words.last ?? "")
        return ValueFault("`\(text)` is not known", give: list)
    }

    /// A flag: nothing, `on` or `off`.
    static func isOn(_ text: String) throws(ValueFault) -> Bool {
        switch text {
        case "", "on": return true
        case "off": return false
        default: throw ValueFault("`\(text)` is not known", give: "on, off or no value")
        }
    }

    static func path(_ text: String) throws(ValueFault) -> String {
        guard !text.isEmpty else { throw ValueFault("the path is empty", give: "a path") }
        return text
    }

    /// A name for `Via`, `CDN-Loop` and `Cache-Status`.
    static func token(_ text: String) throws(ValueFault) -> String {
        guard !text.isEmpty, text.utf8.allSatisfy(ByteClass.isToken) else {
            throw ValueFault(
                "`\(text)` is not a token (RFC 9110 §5.6.2)",
                give: "letters, digits, hyphens and dots"
            )
        }
        return text
    }

    /// The URL of a fleet's log, which is kept as it was given.
    static func fleet(_ text: String) throws(ValueFault) -> String {
        do { _ = try Fleet.redis(text) } catch {
            throw ValueFault((error as? CacheError)?.detail ?? "\(error)")
        }
        return text
    }

    static func origin(_ text: String) throws(ValueFault) -> OriginAddress {
        guard let origin = OriginAddress(text), isReachable(origin) else {
            throw ValueFault(
                "`\(text)` is not an origin",
                give: "http:// or https:// with a host and perhaps a port, and no path"
            )
        }
        return origin
    }

    /// Whether the authority is well formed, and its port can be connected to.
    private static func isReachable(_ origin: OriginAddress) -> Bool {
        guard let slash = origin.description.lastIndex(of: "/") else { return false }
        let authority = origin.description[origin.description.index(after: slash)...]
        guard RequestURL.isAuthority(String(authority)) else { return false }
        return authority.wholeMatch(of: /.*:0+/) == nil
    }
}
