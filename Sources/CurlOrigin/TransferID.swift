internal import Synchronization

/// The identifier of one exchange, unique in the process.
package struct TransferID: Hashable, Sendable {
    package let number: UInt64

    private static let counter = Atomic<UInt64>(0)

    package static func next() -> TransferID {
        TransferID(number: counter.add(1, ordering: .relaxed).newValue)
    }

    /// For tests only.
    init(number: UInt64) { self.number = number }
}
