/// The length that all members of all Content-Length lines share (RFC 9110 §8.6).
public struct ContentLength {
    /// The number of the first member that is one; `nil` if no member is.
    public private(set) var count: Int?
    /// A member is not a number, two differ, or a line has none: the end of the body is unknown.
    public private(set) var isInvalid = false

    /// Whether a line names a transfer coding, which overrides the length (RFC 9112 §6.3).
    public private(set) var isOverridden = false
    /// The number of lines that `init(in:)` has read, of all names.
    public private(set) var lineCount = 0
    /// Whether `init(in:)` has read a line that `HopByHop.strip` removes from a response.
    public private(set) var hasConnectionFields = false

    init() {}

    /// Reads the lines of `fields`.
    public init(in fields: FieldSection) {
        fields.forEachLine { line in
            lineCount += 1
            if HopByHop.belongsToConnection(line.name, .forwardingResponse) {
                hasConnectionFields = true
            }
            switch line.name.count {
            case 14 where line.name.equals(lowercased: "content-length"): add(line.value)
            case 17 where line.name.equals(lowercased: "transfer-encoding"): isOverridden = true
            default: break
            }
        }
    }

    mutating func add(_ line: ByteRun) {
        var members = ListScanner(line)
        var isEmpty = true
        while let member = members.next() {
            isEmpty = false
            let length = DecimalNumber.parse(member)
            if length == nil || (count ?? length) != length { isInvalid = true }
            count = count ?? length
        }
        if isEmpty { isInvalid = true }
    }
}
