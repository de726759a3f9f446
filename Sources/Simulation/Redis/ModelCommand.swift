package import RESP

extension RESPCommand {
    /// The words of the command.
    package var parsedWords: [[UInt8]] {
        var words: [[UInt8]] = []
        var rest = encoded[...]
        /// Takes the number of the line that begins with the given sign.
        func number() -> Int {
            let line = rest.dropFirst().prefix { $0 != 0x0D }
            rest = rest.dropFirst(line.count + 3)
            return Int(String(decoding: line, as: UTF8.self)) ?? 0
        }
        for _ in 0..<number() {
            let count = number()
            words.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count + 2)
        }
        return words
    }
}
