import Synchronization

/// A flag that one task sets once and another reads.
final class Look: Sendable {
    private let noted = Atomic(false)
    var isNoted: Bool { noted.load(ordering: .acquiring) }
    func note() { noted.store(true, ordering: .releasing) }
}
