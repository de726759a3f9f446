import Synchronization

/// A fetch in which the current task was started; it must not request the resource that it fetches.
///
/// This holds for every variant: which one a request selects is known only after its look-up.
/// A task that the origin starts and leaves running inherits the fetch, and may outlive it.
final class AncestorFetch: Sendable {
    /// The fetches that this task, or a task it descends from, was started in.
    @TaskLocal private static var inherited: [AncestorFetch] = []

    /// The key of the resource.
    let key: KeyHash
    private let hasEnded = Atomic(false)

    init(_ key: KeyHash) { self.key = key }

    /// Runs `ask` as part of this fetch.
    nonisolated(nonsending) func run<Answer>(
        _ ask: nonisolated(nonsending) () async throws -> Answer
    ) async throws -> Answer {
        try await Self.$inherited.withValue(Self.underWay + [self]) { try await ask() }
    }

    /// Ends the fetch: the body has ended, or has no reader left.
    func end() { hasEnded.store(true, ordering: .releasing) }

    /// The inherited fetches that have not ended.
    static var underWay: [AncestorFetch] {
        let inherited = inherited
        // A filter would make another array.
        if inherited.isEmpty { return inherited }
        return inherited.filter { !$0.hasEnded.load(ordering: .acquiring) }
    }

    /// Calls `start` inside `ancestors` instead of the fetches that the current task belongs to.
    static func within<Result>(_ ancestors: [AncestorFetch], _ start: () -> Result) -> Result {
        $inherited.withValue(ancestors, operation: start)
    }
}
