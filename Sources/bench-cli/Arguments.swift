import Benchmarks

/// A parsed command line: flags with values, flags without, and positional words in order.
struct Arguments {
    /// A flag of a command.
    struct Flag {
        let name: String
        /// The name of the flag's value in the help, or `nil` if the flag takes no value.
        let placeholder: String?
        let help: String

        init(_ name: String, _ placeholder: String? = nil, _ help: String) {
            self.name = name
            self.placeholder = placeholder
            self.help = help
        }
    }

    private(set) var positional: [String] = []
    private var values: [String: [String]] = [:]
    private(set) var wantsHelp = false

    /// Parses `words`.
    ///
    /// `--name value` and `--name=value` are equivalent; `--` ends the flags.
    init(_ words: [String], flags: [Flag]) throws {
        var rest = words[...]
        while let word = rest.popFirst() {
            if word == "--" {
                positional += rest
                return
            }
            if word == "--help" || word == "-h" {
                wantsHelp = true
            } else if word.hasPrefix("-"), word != "-" {
                try take(word, from: &rest, flags)
            } else {
                positional.append(word)
            }
        }
    }

    private mutating func take(
        _ word: String,
        from rest: inout ArraySlice<String>,
        _ flags: [Flag]
    ) throws {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0])
        guard let flag = flags.first(where: { $0.name == name }) else {
            throw UsageError("\(name): there is no such flag; --help lists them")
        }
        guard flag.placeholder != nil else {
            guard parts.count == 1 else {
                throw UsageError("\(name): the flag takes no value; give \(name) alone")
            }
            values[name, default: []].append("")
            return
        }
        guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst(), !value.isEmpty
        else {
            throw UsageError(
                "\(name): the value is missing; give \(name) \(flag.placeholder ?? "VALUE")"
            )
        }
        values[name, default: []].append(value)
    }

    func has(_ flag: String) -> Bool { values[flag] != nil }

    /// The last value given for a flag.
    func value(_ flag: String) -> String? { values[flag]?.last }

    /// All values given for a flag, in order.
    func values(_ flag: String) -> [String] { values[flag] ?? [] }

    /// Parses a whole number of at least one.
    func count(_ flag: String, atMost most: Int) throws -> Int? {
        guard let text = value(flag) else { return nil }
        guard let count = Int(text), count >= 1 else {
            throw UsageError("\(flag): `\(text)` is not a count; give a whole number above 0")
        }
        guard count <= most else {
            throw UsageError("\(flag): `\(text)` is too large; give at most \(most)")
        }
        return count
    }

    /// Parses a number of bytes: digits with an optional suffix K, M, G or T (powers of 1,024).
    func bytes(_ flag: String) throws -> Int? {
        guard let text = value(flag) else { return nil }
        let shifts: [Character: Int] = ["K": 10, "M": 20, "G": 30, "T": 40]
        var digits = text.uppercased()
        for suffix in ["IB", "B"] where digits.hasSuffix(suffix) {
            digits.removeLast(suffix.count)
            break
        }
        var shift = 0
        if let last = digits.last, let found = shifts[last] {
            shift = found
            digits.removeLast()
        }
        guard let count = Int(digits), count >= 1, count <= Int.max >> shift else {
            throw UsageError(
                "\(flag): `\(text)` is not a size; give a number above 0, as 4096, 64M or 2G"
            )
        }
        return count << shift
    }

    /// Parses a number above zero and at most one.
    func fraction(_ flag: String) throws -> Double? {
        guard let text = value(flag) else { return nil }
        guard let share = Double(text), share > 0, share <= 1 else {
            throw UsageError("\(flag): `\(text)` is not a share; give a number above 0, at most 1")
        }
        return share
    }

    /// Parses a number of seconds above zero.
    func seconds(_ flag: String) throws -> Double? {
        guard let text = value(flag) else { return nil }
        guard let seconds = Double(text), seconds > 0, seconds <= 86_400 else {
            throw UsageError(
                "\(flag): `\(text)` is not a time; give seconds above 0, at most 86400"
            )
        }
        return seconds
    }
}
