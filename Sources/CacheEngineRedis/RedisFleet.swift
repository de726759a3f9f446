package import CacheEngine
import RESP
package import RedisClient
import Synchronization

/// The way of purges through a stream in Redis.
package final class RedisFleet: PurgeRelay {
    /// The time that a start waits for the missed purges.
    private static let startNanoseconds: UInt64 = 2_000_000_000

    private let client: any FleetServer
    private let surroundings: FleetSurroundings
    private let keys: LogKeys
    private let address: NodeAddress
    private let writer: PurgeLogWriter
    private let own = OwnPurges()
    private let presence: FleetPresence
    private let counts: FleetCounts
    private let rule: LogReader.CutOffRule
    private let time: FleetTime
    private let store: SharedStore?
    private let reading = Mutex<Task<Void, Never>?>(nil)

    /// A place in the fleet whose servers the URL names.
    convenience init(
        _ url: RedisURL,
        _ options: RedisFleetOptions,
        _ surroundings: FleetSurroundings = FleetSurroundings()
    ) throws(RedisError) {
        let log = try RedisClient(
            url,
            RedisOptions(
                connectLimit: .seconds(1),
                readLimit: .seconds(1),
                breaker: CircuitBreaker.Limits(openLimitMax: .seconds(1)),
                connectionName: "cache-engine-fleet"
            )
        )
        var entries: RedisClient?
        if options.shares == .entries {
            entries = try RedisClient(
                url,
                RedisOptions(
                    readLimit: surroundings.patience.replyLimit,
                    replies: RESPLimits(bulkBytesMax: SharedRecord.entryBytesMax + (64 << 10)),
                    connectionName: "cache-engine-store"
                )
            )
        }
        self.init(
            log: log,
            entries: entries,
            url.namespace,
            at: url.hosts[0],
            options,
            surroundings
        )
    }

    /// A place in the fleet of these servers; `entries` is `nil` if the machines share purges alone.
    package init(
        log: any FleetServer,
        entries: (any FleetServer)?,
        _ namespace: String,
        at address: NodeAddress,
        _ options: RedisFleetOptions,
        _ surroundings: FleetSurroundings = FleetSurroundings()
    ) {
        client = log
        self.surroundings = surroundings
        self.address = address
        let (counts, time) = (FleetCounts(surroundings.clock), FleetTime(surroundings.clock))
        (self.counts, self.time) = (counts, time)
        store = entries.map { SharedStore($0, namespace: namespace, surroundings, time, counts) }
        keys = LogKeys(namespace: namespace)
        writer = PurgeLogWriter(log, surroundings, keys, at: address, counts)
        presence = FleetPresence(log, surroundings, keys, at: address, time)
        rule = LogReader.CutOffRule(
            lagNanoseconds: options.lagNanoseconds,
            revalidates: options.whenCutOff == .revalidate
        )
    }

    deinit { reading.withLock { $0 }?.cancel() }

    package func start(_ receiver: any PurgeReceiver) async {
        let bookmark = await receiver.bookmark().flatMap { Bookmark($0) }
        let applier = PurgeApplier(receiver, surroundings, counts)
        let loop = LogLoop(
            client: client,
            surroundings: surroundings,
            keys: keys,
            address: address,
            writer: writer,
            own: own,
            restorer: PurgeRestorer(writer, surroundings, counts, store),
            counts: counts,
            receiver: receiver,
            applier: applier,
            rule: rule,
            store: store,
            presence: presence,
            time: time
        )
        let firstLink = Race<Void>()
        let task = surroundings.start {
            await loop.run(from: bookmark) { firstLink.finish(.success(())) }
        }
        reading.withLock { $0 = task }
        let timer = surroundings.start { [clock = surroundings.clock] in
            try? await clock.sleep(nanoseconds: Self.startNanoseconds)
            firstLink.finish(.success(()))
        }
        try? await firstLink.result()
        timer.cancel()
        // The purges of the gap are not all applied, so the origin must confirm each entry.
        let hasGap = counts.isReplaying.load(ordering: .acquiring)
        if hasGap, !Mutant.servesWithinTheGap.isOn { await applier.doubtEverything() }
        counts.isServing.store(true, ordering: .releasing)
    }

    package func share(_ purges: [SharedPurge], areApplied: Bool) async throws -> FleetReceipt {
        let all = purges.map { FleetPurge(id: .random(), purge: $0) }
        // Before the append: the reader may see them before the writer has its reply.
        if areApplied { own.insert(all) }
        let number = store?.nextNumber() ?? 0
        do throws(RedisError) {
            let receipt = try await writer.append(all)
            own.noteAppended(all)
            store?.confirm(purges, at: receipt.position, number)
            return receipt
        } catch {
            store?.fail(purges, number)
            throw CacheError(.fleetFailed, detail: error.detail)
        }
    }

    package func reach(of receipt: FleetReceipt) async -> FleetReach? {
        await presence.reach(of: FleetPosition(rawValue: receipt.position))
    }

    /// No record from before is used until the log confirms the purges.
    package func announce(_ purges: [SharedPurge]) { store?.announce(purges) }

    package var sharedTier: (any SharedTier)? { store }

    package var statistics: FleetStatistics {
        var statistics = counts.statistics()
        let commands = store.map { client.counts + $0.serverCounts } ?? client.counts
        statistics.isSuspended = client.isSuspended
        statistics.isStoreSuspended = store?.isSuspended ?? false
        statistics.commandsWaiting = commands.waiting
        statistics.commandsRefused = commands.refusedByLimits + commands.refusedByBreaker
        return statistics
    }

    package func shutDown() async {
        reading.withLock { $0 }?.cancel()
        await presence.withdraw()
        await store?.shutDown()
        await client.shutDown()
    }
}
