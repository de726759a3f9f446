import CacheEngine
import Platform
import RedisClient
import Synchronization

/// The way of purges through a stream in Redis.
final class RedisFleet: PurgeRelay {
    /// The time that a start waits for the missed purges.
    private static let startNanoseconds: UInt64 = 2_000_000_000

    private let client: RedisClient
    private let keys: LogKeys
    private let address: NodeAddress
    private let writer: LogWriter
    private let own = OwnPurges()
    private let presence: FleetPresence
    private let counts = FleetCounts()
    private let rule: LogReader.CutOffRule
    private let time = FleetTime()
    private let store: SharedStore?
    private let reading = Mutex<Task<Void, Never>?>(nil)

    init(_ url: RedisURL, _ options: RedisFleetOptions) throws(RedisError) {
        client = try RedisClient(
            url,
            RedisOptions(
                connectLimit: .seconds(1),
                readLimit: .seconds(1),
                breaker: CircuitBreaker.Limits(openLimitMax: .seconds(1)),
                connectionName: "cache-engine-fleet"
            )
        )
        store = options.shares == .entries ? try SharedStore(url, time, counts) : nil
        keys = LogKeys(namespace: url.namespace)
        address = url.hosts[0]
        writer = LogWriter(client, keys, at: address, counts)
        presence = FleetPresence(client, keys, at: address, time)
        rule = LogReader.CutOffRule(
            lagNanoseconds: options.lagNanoseconds,
            revalidates: options.whenCutOff == .revalidate
        )
    }

    deinit { reading.withLock { $0 }?.cancel() }

    func start(_ receiver: any PurgeReceiver) async {
        let bookmark = await receiver.note().flatMap { Bookmark($0) }
        let loop = LogLoop(
            client: client,
            keys: keys,
            address: address,
            writer: writer,
            own: own,
            counts: counts,
            receiver: receiver,
            rule: rule,
            store: store,
            presence: presence,
            time: time
        )
        let firstLink = Race<Void>()
        let task = Task { await loop.run(from: bookmark) { firstLink.finish(.success(())) } }
        reading.withLock { $0 = task }
        let timer = Task {
            try? await Task.sleep(nanoseconds: Self.startNanoseconds)
            firstLink.finish(.success(()))
        }
        try? await firstLink.result()
        timer.cancel()
        if counts.isReplaying.load(ordering: .acquiring) { await doubtEverything(receiver) }
        counts.isServing.store(true, ordering: .releasing)
    }

    /// The purges of the gap are not all applied, so the origin must confirm each entry.
    private func doubtEverything(_ receiver: any PurgeReceiver) async {
        if Mutant.servesWithinTheGap.isOn { return }
        do {
            try await receiver.markEverythingStale()
            counts.allMarkedStale.count()
        } catch {
            // It holds in this process. The position is kept only behind purges that were applied.
            counts.notApplied.count()
        }
    }

    func share(_ purges: [SharedPurge], areApplied: Bool) async throws -> FleetReceipt {
        let all = purges.map { FleetPurge(id: .random(), purge: $0) }
        // Before the append: the reader may see them before the writer has its reply.
        if areApplied { own.insert(all) }
        do throws(RedisError) {
            let receipt = try await writer.append(all)
            own.noteAppended(all)
            store?.confirm(purges, at: receipt.position)
            return receipt
        } catch {
            store?.fail(purges)
            throw CacheError(.fleetFailed, detail: error.detail)
        }
    }

    func reach(of receipt: FleetReceipt) async -> FleetReach? {
        await presence.reach(of: FleetPosition(rawValue: receipt.position))
    }

    /// No record from before is used until the log confirms the purges.
    func announce(_ purges: [SharedPurge]) { store?.announce(purges) }

    var sharedTier: (any SharedTier)? { store }

    var statistics: FleetStatistics { counts.statistics(isSuspended: client.isSuspended) }

    func shutDown() async {
        reading.withLock { $0 }?.cancel()
        await presence.withdraw()
        await store?.shutDown()
        await client.shutDown()
    }
}
