/// A value that several cases of a workload share, created on first use.
final class Shared<Value> {
    private let make: () throws -> Value
    private(set) var made: Value?

    init(_ make: @escaping () throws -> Value) { self.make = make }

    func get() throws -> Value {
        if let made { return made }
        let value = try make()
        made = value
        return value
    }

    func release() { made = nil }
}

extension Shared {
    /// The value, if `make` cannot fail.
    var value: Value {
        guard let value = try? get() else { preconditionFailure("a fixture failed to be made") }
        return value
    }
}
