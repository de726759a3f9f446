/// The part of a representation that a body holds (RFC 9110 §14.4).
public struct ContentRange: Hashable, Sendable {
    /// `nil` in `bytes */size`, which means that no requested range exists.
    public let range: Range<Int>?
    /// `nil` if the sender does not know the size.
    public let bodySize: Int?

    public init(range: Range<Int>, bodySize: Int?) {
        precondition(!range.isEmpty && range.lowerBound >= 0)
        self.range = range
        self.bodySize = bodySize
    }

    public init(unsatisfiedBodySize: Int) {
        precondition(unsatisfiedBodySize >= 0)
        range = nil
        bodySize = unsatisfiedBodySize
    }

    /// Returns `nil` if the unit is not bytes, or the range is reversed or exceeds the size.
    public init?(_ field: ByteRun) {
        let text = field.trimmed
        guard text.count > 6, text[0..<6].equals(lowercased: "bytes "),
            let slash = text.index(of: .slash)
        else { return nil }
        let position = text[6..<max(6, slash)].trimmed
        let sizeText = text[(slash + 1)..<text.count].trimmed
        let size = DecimalNumber.parse(sizeText)
        guard size != nil || sizeText.equals(exactly: "*") else { return nil }
        if position.equals(exactly: "*") {
            guard size != nil else { return nil }
            range = nil
            bodySize = size
            return
        }
        guard let hyphen = position.index(of: .hyphen),
            let first = DecimalNumber.parse(position[0..<hyphen]),
            let last = DecimalNumber.parse(position[(hyphen + 1)..<position.count]),
            first <= last, last < (size ?? .max)
        else { return nil }
        range = first..<(last + 1)
        bodySize = size
    }

    public init?(_ text: String) {
        guard let parsed = text.withByteRun({ ContentRange($0) }) else { return nil }
        self = parsed
    }

    public var text: String { withText { $0.string } }

    /// Lends the text to `body`.
    func withText<Result>(_ body: (ByteRun) -> Result) -> Result {
        withUnsafeTemporaryAllocation(byteCount: Self.bytesMax, alignment: 1) { target in
            var count = 0
            func add(_ literal: StaticString) {
                let bytes = ByteRun(literal).buffer
                UnsafeMutableRawBufferPointer(rebasing: target[count...]).copyMemory(from: bytes)
                count += bytes.count
            }
            func add(_ number: Int) {
                count += DecimalText.write(number, into: .init(rebasing: target[count...]))
            }
            add("bytes ")
            if let range {
                add(range.lowerBound)
                add("-")
                add(range.upperBound - 1)
            } else {
                add("*")
            }
            add("/")
            if let bodySize { add(bodySize) } else { add("*") }
            return body(ByteRun(UnsafeRawBufferPointer(rebasing: target[..<count])))
        }
    }

    /// The bytes of the longest text: three numbers and the signs around them.
    static let bytesMax = 8 + 3 * DecimalText.bytesMax
}
