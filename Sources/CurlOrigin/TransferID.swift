internal import Synchronization

/// The name of one exchange, used once in the life of the process.
struct TransferID: Hashable, Sendable {
    private let number: UInt64

    private static let counter = Atomic<UInt64>(0)

    static func next() -> TransferID {
        TransferID(number: counter.add(1, ordering: .relaxed).newValue)
    }

    /// For tests.
    init(number: UInt64) { self.number = number }
}
