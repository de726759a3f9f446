/// A command as a server reads it: an array of bulk strings.
///
/// The words are written into one buffer as they are added. Their number stands in front of them on
/// the wire, and is written with the whole command, so that it cannot be wrong.
package struct RESPCommand: Hashable, Sendable {
    /// The words, each with its length.
    private var words: [UInt8]
    private var wordCount = 0
    /// The slot of the first key; `nil` if the command has no key.
    package private(set) var slot: UInt16?

    /// Begins a command; `capacity` is the expected number of bytes of its words.
    package init(_ name: StaticString, capacity: Int = 0) {
        words = []
        words.reserveCapacity(capacity + 24)
        add(name)
    }

    /// Makes a command of texts; `key` comes first if it is given.
    package init(_ name: StaticString, key: String? = nil, _ rest: String...) {
        self.init(name, capacity: 0)
        if let key { add(key: key) }
        for word in rest { add(word) }
    }

    /// Makes a command with a key alone.
    package init(_ name: StaticString, key: [UInt8]) {
        self.init(name, capacity: key.count + 16)
        add(key: key)
    }

    package mutating func add(_ word: StaticString) {
        begin(word.utf8CodeUnitCount)
        words.append(
            contentsOf: UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        )
        end()
    }

    package mutating func add(_ word: String) {
        begin(word.utf8.count)
        words.append(contentsOf: word.utf8)
        end()
    }

    package mutating func add(_ word: [UInt8]) { word.withUnsafeBytes { add($0) } }

    package mutating func add(_ word: UnsafeRawBufferPointer) {
        begin(word.count)
        words.append(contentsOf: word)
        end()
    }

    package mutating func add(_ number: Int) {
        begin(Decimal.digitCount(of: number))
        Decimal.append(number, to: &words)
        end()
    }

    package mutating func add(key: String) {
        var key = key
        key.withUTF8 { add(key: UnsafeRawBufferPointer($0)) }
    }

    package mutating func add(key: [UInt8]) { key.withUnsafeBytes { add(key: $0) } }

    package mutating func add(key: UnsafeRawBufferPointer) {
        if slot == nil { slot = KeySlot.slot(of: key) }
        add(key)
    }

    private mutating func begin(_ count: Int) {
        words.append(UInt8(ascii: "$"))
        Decimal.append(count, to: &words)
        end()
        wordCount += 1
    }

    private mutating func end() {
        words.append(0x0D)
        words.append(0x0A)
    }
}

// MARK: - On the wire

extension RESPCommand {
    /// The bytes that `append` writes.
    package var encodedBytes: Int { 3 + Decimal.digitCount(of: wordCount) + words.count }

    package func append(to buffer: inout [UInt8]) {
        buffer.append(UInt8(ascii: "*"))
        Decimal.append(wordCount, to: &buffer)
        buffer.append(0x0D)
        buffer.append(0x0A)
        buffer.append(contentsOf: words)
    }

    /// The command alone.
    package var encoded: [UInt8] {
        var buffer: [UInt8] = []
        buffer.reserveCapacity(encodedBytes)
        append(to: &buffer)
        return buffer
    }
}

/// Whole numbers in decimal digits, written without a string.
private enum Decimal {
    static func digitCount(of number: Int) -> Int {
        var count = number < 0 ? 2 : 1
        var rest = number.magnitude / 10
        while rest > 0 {
            count += 1
            rest /= 10
        }
        return count
    }

    static func append(_ number: Int, to buffer: inout [UInt8]) {
        let count = digitCount(of: number)
        let start = buffer.count
        for _ in 0..<count { buffer.append(UInt8(ascii: "-")) }
        var rest = number.magnitude
        var place = start + count
        repeat {
            place -= 1
            buffer[place] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        } while rest > 0
    }
}
