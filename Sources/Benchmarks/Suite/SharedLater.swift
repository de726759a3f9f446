/// A value that several cases of a workload share, created asynchronously on first use.
final class SharedLater<Value> {
    private let make: () async throws -> Value
    private(set) var made: Value?

    init(_ make: @escaping () async throws -> Value) { self.make = make }

    func get() async throws -> Value {
        if let made { return made }
        let value = try await make()
        made = value
        return value
    }

    func release() { made = nil }
}
