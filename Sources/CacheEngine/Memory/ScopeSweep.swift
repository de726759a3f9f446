/// A walk over all slots of a memory that removes the entries in several scopes.
///
/// Entries that were in memory when the walk began are gone when it is done. Each hold of a lock
/// looks at a few slots, so readers and writers go on meanwhile.
struct ScopeSweep {
    /// The holds of a lock between two suspensions.
    private static let holdsPerTurn = 16

    private(set) var scopes: SweepScopes
    private let shards: ShardSet
    /// The entries that were removed for each scope; one in several scopes counts for the first.
    private var removed: [RemovalCount]
    private var door = 0
    private var walk = SlotWalk()

    init(_ scopes: [RemovalScope], of shards: ShardSet) {
        self.scopes = SweepScopes(scopes)
        self.shards = shards
        removed = scopes.map { _ in RemovalCount() }
    }

    /// Whether the last slots have been looked at.
    var isDone: Bool { door == shards.doors.count }

    /// Walks to the end, and lets other tasks run between two turns.
    consuming func run() async -> [RemovalCount] {
        while !isDone {
            for _ in 0..<Self.holdsPerTurn where !isDone { advance() }
            await Task.yield()
        }
        return finish()
    }

    /// Removes the entries in the next slots.
    mutating func advance() {
        var walk = walk
        let batch = shards.doors[door].unlinkNext(of: &walk) { entry in
            guard let scope = scopes.first(with: entry) else { return false }
            removed[scope].entries += 1
            removed[scope].bytes += entry.sizeBytes
            return true
        }
        shards.commons.retire(batch)
        self.walk = walk
        if walk.isDone { (door, self.walk) = (door + 1, SlotWalk()) }
    }

    /// Releases the removed entries, and returns how many were removed for each scope.
    func finish() -> [RemovalCount] {
        shards.commons.retired.flush()
        return removed
    }
}
