/// The owner of the walks that remove many entries of one memory.
///
/// One walk is under way at a time. The removals that are asked for meanwhile share the next one, so
/// a hundred purged tags cost two walks.
actor MemorySweeper {
    private typealias Walk = Task<[RemovalCount], Never>

    private let shards: ShardSet
    /// The scopes of the next walk.
    private var scopes: [RemovalScope] = []
    /// The next walk, which waits for the one under way.
    private var next: Walk?
    /// The walk that was begun last.
    private var last: Walk?
    /// The walks begun.
    private(set) var walkCount = 0

    init(_ shards: ShardSet) { self.shards = shards }

    func removeAll(
        in scope: RemovalScope,
        on executor: (any TaskExecutor)?
    ) async -> RemovalCount {
        let place = scopes.count
        scopes.append(scope)
        return await (next ?? plan(on: executor)).value[place]
    }

    private func plan(on executor: (any TaskExecutor)?) -> Walk {
        let walk = Task(executorPreference: executor) { [self, last] in
            _ = await last?.value
            return await begin().run()
        }
        (next, last) = (walk, walk)
        return walk
    }

    private func begin() -> ScopeSweep {
        defer { (scopes, next) = ([], nil) }
        walkCount += 1
        return ScopeSweep(scopes, of: shards)
    }
}
