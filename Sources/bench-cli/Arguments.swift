import Benchmarks

/// A command line taken apart: flags with values, flags without, and the rest in order.
struct Arguments {
    /// A flag that a command knows.
    struct Flag {
        let name: String
        /// What stands for its value in the help, or nil for a flag without one.
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

    /// Reads `words`; `--name value` and `--name=value` mean the same, `--` ends the flags.
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
            throw UsageError("\(name): no such flag; --help names those there are")
        }
        guard flag.placeholder != nil else {
            guard parts.count == 1 else { throw UsageError("\(name) takes no value") }
            values[name, default: []].append("")
            return
        }
        guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst(), !value.isEmpty
        else { throw UsageError("\(name) needs a value: \(name) \(flag.placeholder ?? "")") }
        values[name, default: []].append(value)
    }

    func has(_ flag: String) -> Bool { values[flag] != nil }

    /// The value given last.
    func value(_ flag: String) -> String? { values[flag]?.last }

    /// Every value given, in order.
    func values(_ flag: String) -> [String] { values[flag] ?? [] }

    /// A whole number of at least one.
    func count(_ flag: String) throws -> Int? {
        guard let text = value(flag) else { return nil }
        guard let count = Int(text), count >= 1 else {
            throw UsageError("\(flag) \(text): a whole number of 1 or more is needed")
        }
        return count
    }

    /// A number of bytes: digits, perhaps with K, M, G or T (powers of 1,024) behind them.
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
            throw UsageError("\(flag) \(text): a size is needed, such as 64M")
        }
        return count << shift
    }

    /// A number above zero, at most one.
    func fraction(_ flag: String) throws -> Double? {
        guard let text = value(flag) else { return nil }
        guard let share = Double(text), share > 0, share <= 1 else {
            throw UsageError("\(flag) \(text): a share above 0 and up to 1 is needed")
        }
        return share
    }

    /// A number of seconds above zero.
    func seconds(_ flag: String) throws -> Double? {
        guard let text = value(flag) else { return nil }
        guard let seconds = Double(text), seconds > 0, seconds <= 86_400 else {
            throw UsageError("\(flag) \(text): a number of seconds is needed")
        }
        return seconds
    }
}
