import CacheEngine
import CacheEngineRedis
import CacheTestSupport
import Platform
import Synchronization

/// One machine of a fleet: a cache of its own in this process.
struct FleetMachine: Sendable {
    /// The things that a machine shares with others.
    enum Sharing: String, CaseIterable {
        /// Nothing: there is no fleet.
        case off
        /// Purges, through the log.
        case log
        /// Purges and entries.
        case store

        var parameter: Measurement.Parameter { .init("fleet", rawValue) }
    }

    let cache: HTTPCache

    /// Opens a cache, and waits until it reads the log.
    init(
        _ server: RedisServer,
        _ sharing: Sharing,
        _ origin: any Origin,
        memory: MemoryOptions = .megabytes(512)
    ) async throws {
        let configuration = HTTPCache.Configuration(memory: memory, mode: .shared)
        guard sharing != .off else {
            cache = try await HTTPCache(configuration: configuration, origin: origin)
            return
        }
        var options = RedisFleetOptions()
        options.shares = sharing == .store ? .entries : .purges
        cache = try await HTTPCache(
            configuration: configuration,
            origin: origin,
            fleet: server.fleet(options)
        )
        let machine = self
        let isLinked = await eventually { await machine.counts.isLinked }
        try WorkloadFailure.require(isLinked, "A machine does not read the log of the fleet")
    }

    var counts: FleetStatistics { get async { await cache.statistics.fleet ?? .init() } }

    /// Requests a resource; throws if the body is not the right one.
    func request(_ number: Int) async throws -> CacheResponse {
        let response = try await cache.respond(to: CacheRequest(url: KeySet.text(number)))
        let isRight = HTTPFixture.isRight(response, number)
        try WorkloadFailure.require(isRight, "fleet: a response to request \(number) is wrong")
        return response
    }

    /// Requests a resource that is not in memory; returns whether the shared store had it.
    ///
    /// A look-up that takes too long ends at the origin.
    func isSharedHit(_ number: Int) async throws -> Bool {
        try await request(number).info.tier == .shared
    }

    /// Waits until this machine has copied its `count` responses to the shared store.
    ///
    /// A machine without a processor for half a second loses a copy; more than a few are a fault.
    func waitUntilPublished(_ count: Int) async throws {
        let isDone = await eventually {
            let counts = await self.counts
            return counts.published + counts.unpublished >= count
        }
        let counts = await self.counts
        try WorkloadFailure.require(
            isDone && counts.unpublished <= count / 50 + 2,
            "fleet: \(counts.published) of \(count) responses are in the shared store"
        )
    }
}

/// An origin that counts its requests.
final class FleetOrigin: Origin {
    private let bodySizeBytes: Int
    private let delayNanoseconds: UInt64
    private let requests = Atomic(0)

    init(bodySizeBytes: Int, delayNanoseconds: UInt64 = 0) {
        self.bodySizeBytes = bodySizeBytes
        self.delayNanoseconds = delayNanoseconds
    }

    var count: Int { requests.load(ordering: .acquiring) }

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        requests.add(1, ordering: .relaxed)
        if delayNanoseconds > 0 { try await Task.sleep(nanoseconds: delayNanoseconds) }
        return NumberedOrigin.answer(to: request, bodySizeBytes: bodySizeBytes)
    }
}

/// A server whose shared store has the entries of one machine.
final class FleetFixture {
    static let bodySizeBytes = 4 << 10
    /// The callers that fill the store: few enough for the limits of the client.
    private static let fillers = 16

    let server: RedisServer
    let origin = FleetOrigin(bodySizeBytes: bodySizeBytes)
    let keyCount: Int
    private let writer: FleetMachine

    init(_ plan: WorkloadPlan, keyCount: Int, isPatient: Bool) async throws {
        self.keyCount = keyCount
        server = try await RedisServer(plan, isPatient: isPatient)
        writer = try await FleetMachine(server, .store, origin)
        let writer = writer
        try await Self.forEach(0..<keyCount, callers: Self.fillers) { number in
            _ = try await writer.request(number)
            // The copies are made after the responses.
            if number % 256 < Self.fillers {
                try await writer.waitUntilPublished(max(0, number - 1_024))
            }
        }
        try await writer.waitUntilPublished(keyCount)
    }

    /// A machine with an empty memory.
    func machine(_ sharing: FleetMachine.Sharing = .store) async throws -> FleetMachine {
        try await FleetMachine(server, sharing, origin)
    }

    func finish() async { await writer.cache.shutDown() }

    /// Does the work for each number, in several tasks; returns when all have ended.
    static func forEach(
        _ numbers: Range<Int>,
        callers: Int,
        _ work: @escaping @Sendable (Int) async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for caller in 0..<callers {
                group.addTask {
                    for number in stride(
                        from: numbers.lowerBound + caller,
                        to: numbers.upperBound,
                        by: callers
                    ) { try await work(number) }
                }
            }
            try await group.waitForAll()
        }
    }
}
