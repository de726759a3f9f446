/// The number of samples of each call stack.
package struct StackSamples: Sendable {
    /// The count of each stack, which is listed from the outermost call to the innermost.
    package private(set) var counts: [[String]: Int] = [:]
    package private(set) var total = 0

    package init() {}

    /// Parses the output of `perf script`, or folded stacks such as `outer;middle;inner 42`.
    package init(parsing text: String) {
        var frames: [String] = []
        var isInSample = false
        func isFrame(_ line: Substring) -> Bool { line.first == "\t" || line.first == " " }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if isInSample, isFrame(line), let name = Self.frame(in: line) {
                frames.append(name)
            } else if line.allSatisfy(\.isWhitespace) {
                add(frames.reversed(), times: 1)
                frames = []
                isInSample = false
            } else if !isFrame(line) || !isInSample {
                if let (stack, count) = Self.folded(line) {
                    add(stack, times: count)
                } else {
                    isInSample = true
                }
            }
        }
        add(frames.reversed(), times: 1)
    }

    package mutating func add(_ stack: [String], times: Int) {
        guard !stack.isEmpty, times > 0 else { return }
        counts[stack, default: 0] += times
        total += times
    }

    /// The functions with the most samples of their own, without their callees.
    package func hottest(_ limit: Int) -> TextTable {
        var own: [String: Int] = [:]
        var inclusive: [String: Int] = [:]
        for (stack, count) in counts {
            if let last = stack.last { own[last, default: 0] += count }
            for name in Set(stack) { inclusive[name, default: 0] += count }
        }
        var table = TextTable([("self", .right), ("with callees", .right), ("function", .left)])
        func percent(_ count: Int) -> String {
            (Double(count) * 100 / Double(max(1, total))).fixed(1) + " %"
        }
        for (name, count) in own.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) })
            .prefix(limit)
        {
            table.append([percent(count), percent(inclusive[name] ?? 0), String(name.prefix(110))])
        }
        return table
    }

    /// The `symbol` of a line `  7f3a2c10 symbol+0x1f (library)`.
    private static func frame(in line: Substring) -> String? {
        let words = line.drop { $0 == " " || $0 == "\t" }
        guard let space = words.firstIndex(of: " "),
            words[..<space].allSatisfy(\.isHexDigit)
        else { return nil }
        var name = words[words.index(after: space)...]
        var library = Substring("")
        if name.last == ")", let open = name.lastIndex(of: "(") {
            library = name[name.index(after: open)...].dropLast()
            name = name[..<open]
        }
        while name.last == " " { name.removeLast() }
        if let plus = name.lastIndex(of: "+"), name[plus...].hasPrefix("+0x") {
            name = name[..<plus]
        }
        if name == "[unknown]" || name.isEmpty {
            return "[\(library.split(separator: "/").last ?? "unknown")]"
        }
        // A frame name may contain the separator of frames.
        return String(SymbolName.readable(String(name)).map { $0 == ";" ? ":" : $0 })
    }

    private static func folded(_ line: Substring) -> (stack: [String], count: Int)? {
        guard let space = line.lastIndex(of: " "),
            let count = Int(line[line.index(after: space)...])
        else { return nil }
        let stack = line[..<space].split(separator: ";").map(String.init)
        return stack.isEmpty ? nil : (stack, count)
    }
}
