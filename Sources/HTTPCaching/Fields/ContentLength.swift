/// The length that all members of all Content-Length lines share (RFC 9110 §8.6).
package struct ContentLength {
    /// The number of the first member that is one; `nil` if no member is.
    package private(set) var count: Int?
    /// A member is not a number, two differ, or a line has none: the end of the body is unknown.
    package private(set) var isInvalid = false

    init() {}

    /// Reads the lines of `fields`.
    package init(in fields: FieldSection) {
        fields.forEachValue(of: "content-length") { add($0) }
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
