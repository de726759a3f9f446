import Synchronization

/// A mark that somebody sets once and somebody else looks at.
final class Look: Sendable {
    private let noted = Atomic(false)
    var isNoted: Bool { noted.load(ordering: .acquiring) }
    func note() { noted.store(true, ordering: .releasing) }
}
