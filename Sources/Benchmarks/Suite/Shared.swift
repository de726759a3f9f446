/// Something several cases of a workload use, made when the first of them needs it.
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
    /// For what cannot fail to be made.
    var value: Value {
        guard let value = try? get() else { preconditionFailure("a fixture failed to be made") }
        return value
    }
}
