import CacheTestSupport
import Synchronization
import Testing

@testable import CacheEngine

/// The end of the lease under which this machine fetches for the whole fleet.
@Suite struct SharedLeaseTests {
    private static let request = CacheRequest(url: "http://example.com/page")

    /// A store without records, which gives every caller a lease and notes its end.
    private final class LeasingTier: SharedTier {
        struct End: Hashable {
            let number: UInt8
            let ending: SharedLease.Ending
        }

        private struct State {
            var leases = UInt8(0)
            var ends: [End] = []
            var permissions: [Bool] = []
            var onPublish: (@Sendable () -> Void)?
            var steps: [String] = []
            var onStep: (@Sendable () -> Bool)?
        }

        private let state = Mutex(State())

        var ends: [End] { state.withLock { $0.ends } }
        /// Whether each copy was permitted.
        var permissions: [Bool] { state.withLock { $0.permissions } }

        /// The steps of removals so far, each with a sign if `onStep` gave `true` then.
        var steps: [String] { state.withLock { $0.steps } }

        func onStep(_ body: @escaping @Sendable () -> Bool) { state.withLock { $0.onStep = body } }

        private func note(_ step: String) {
            let isTrue = state.withLock { $0.onStep }?() ?? false
            state.withLock { $0.steps.append(isTrue ? step + "+" : step) }
        }

        /// Calls `body` before it is asked whether a copy is permitted.
        func onPublish(_ body: @escaping @Sendable () -> Void) {
            state.withLock { $0.onPublish = body }
        }

        func look<Value: Sendable>(
            _ key: SharedKey,
            _ clock: any CacheClock,
            _ budget: inout SharedBudget,
            _ use: @Sendable (StoredEntry) -> Value?
        ) async -> SharedLook<Value> {
            let number = state.withLock { state in
                state.leases += 1
                return state.leases
            }
            return .lead(SharedLease(key: key, token: [number]), older: nil)
        }

        func budget(startedNanoseconds: UInt64) -> SharedBudget {
            SharedBudget(startedNanoseconds: startedNanoseconds, spentNanosecondsMax: .max)
        }

        func end(_ lease: SharedLease, _ ending: SharedLease.Ending) {
            state.withLock { $0.ends.append(End(number: lease.token[0], ending: ending)) }
        }

        func publish(_ copies: [SharedCopy], onlyIf isPermitted: () -> Bool) {
            state.withLock { $0.onPublish }?()
            let isPermitted = isPermitted()
            state.withLock { $0.permissions.append(isPermitted) }
        }

        func hide(_ key: SharedKey) { note("hide") }
        func forget(_ key: SharedKey) { note("forget") }
        func forgetEverything() { note("forgetEverything") }
    }

    /// A request between the removal and the end of the record would read back what was removed.
    @Test(arguments: [true, false])
    func recordIsHiddenBeforeItsEntryIsRemoved(isUnsafe: Bool) async throws {
        let tier = LeasingTier()
        let world = try await SimulatedCache(
            origin: ScriptedOrigin(fields: ["Cache-Control": "max-age=60"]),
            fleet: ScriptedRelay(sharing: tier).fleet
        )
        _ = await world.answer(Self.request)
        let (tiers, key) = (
            world.cache.services.tiers, try world.cache.services.key(of: Self.request).key
        )
        tier.onStep { tiers.peek(key) != nil }
        if isUnsafe { await tiers.remove(key) } else { tiers.removeStored(key) }
        #expect(tier.steps == ["hide+", "forget"])
        #expect(await world.shutDown())
    }

    /// A store that removes nothing.
    private struct StubbornStore: CacheStore {
        struct Failure: Error {}

        func entry(for key: StoreKey) async throws -> StoredEntry? { nil }
        func store(_ entry: StoredEntry) async throws -> StoreOutcome { .stored }
        func remove(_ key: StoreKey) async throws -> Bool { false }
        func removeAll(in scope: RemovalScope) async throws -> RemovalCount { throw Failure() }
        func usage() async -> StoreUsage { StoreUsage() }
        func flush() async throws {}
    }

    /// The removal holds in the process, so the records must not bring the entries back.
    @Test func recordsAreForgottenAlsoIfTheStoreFails() async throws {
        let tier = LeasingTier()
        let (supervisor, recorder) = (Supervisor(), Recorder(onEvent: nil))
        let tiers = TieredStore(
            memory: MemoryTier(MemoryConfiguration(capacityBytes: 16 << 20)),
            backing: QueuedStore(StubbornStore(), supervisor: supervisor, recorder: recorder),
            hasher: .random(),
            clock: FixedClock(nowSeconds: 1_000_000),
            recorder: recorder,
            outlet: SharedOutlet(tier: tier)
        )
        await #expect(throws: CacheError.self) {
            try await tiers.removeAll(in: .storageClass(.session))
        }
        #expect(tier.steps == ["forgetEverything", "forgetEverything"])
        await #expect(throws: CacheError.self) { try await tiers.removeAll(in: .everything) }
        #expect(tier.steps.count == 2)
    }

    /// A removal comes between the store of a response and its copy: the other machines would use
    /// it for the rest of its lifetime.
    @Test func responseThatIsRemovedBehindItsStoreIsNotCopied() async throws {
        let tier = LeasingTier()
        let world = try await SimulatedCache(
            origin: ScriptedOrigin(fields: ["Cache-Control": "max-age=60"]),
            fleet: ScriptedRelay(sharing: tier).fleet
        )
        let ledger = world.cache.services.tiers.ledger
        _ = await world.answer(Self.request)
        tier.onPublish { ledger.begin(.storedBefore(unixSeconds: .max)) }
        _ = await world.answer(CacheRequest(url: "http://example.com/other"))
        ledger.end(.storedBefore(unixSeconds: .max))
        #expect(tier.permissions == [true, false])
        #expect(await world.shutDown())
    }

    /// Another machine may share an index again that leads to a variant which no look-up finds now.
    @Test(arguments: [false, true])
    func markOfAVariantTakesAllIfEntriesAreShared(isShared: Bool) async throws {
        let relay = ScriptedRelay(sharing: isShared ? LeasingTier() : nil)
        let world = try await SimulatedCache(
            origin: ScriptedOrigin(fields: ["Cache-Control": "max-age=60", "Vary": "Accept"]),
            fleet: relay.fleet
        )
        let requests = ["a/a", "b/b"].map { type in
            CacheRequest(url: "http://example.com/a", fields: ["Accept": type])
        }
        for request in requests { _ = await world.answer(request) }
        await world.perform { _ = try? await $0.markVariantStale(requests[0]) }
        #expect(relay.shared.map(\.isSoft) == [true])
        let other = await world.answer(requests[1])
        #expect(other.isComplete && (other.info?.source == .fresh) == !isShared)
        let marked = await world.answer(requests[0])
        #expect(marked.isComplete && marked.info?.source == .origin)
        #expect(await world.shutDown())
    }

    /// An error that one client causes, and a response that a removal has overtaken, tell nothing of the
    /// next response: another machine takes the lease.
    @Test(
        arguments: [
            (200, "no-store", .unshareable), (404, "no-store", .unshareable),
            (400, "no-store", .failed), (431, "no-store", .failed), (500, "no-store", .failed),
        ] as [(Int, String, SharedLease.Ending)]
    )
    func leaseEndsAsTheResponseTells(
        _ status: Int,
        _ cacheControl: String,
        _ ending: SharedLease.Ending
    ) async throws {
        let tier = LeasingTier()
        let world = try await SimulatedCache(
            origin: ScriptedOrigin(status: status, fields: ["Cache-Control": cacheControl]),
            fleet: ScriptedRelay(sharing: tier).fleet
        )
        _ = await world.answer(Self.request)
        #expect(tier.ends == [LeasingTier.End(number: 1, ending: ending)])
        #expect(await world.shutDown())
    }

    /// Its response says nothing about those for the other clients of the fleet.
    @Test func refreshForOneClientTakesNoLease() async throws {
        let tier = LeasingTier()
        let origin = ScriptedOrigin { request, _ in
            request.fields.contains("Authorization")
                ? .whole(status: 403, fields: [:], body: "no")
                : .whole(
                    fields: ["Cache-Control": "max-age=10, stale-while-revalidate=100"],
                    body: "old"
                )
        }
        let world = try await SimulatedCache(
            origin: origin,
            fleet: ScriptedRelay(sharing: tier).fleet
        )
        _ = await world.answer(Self.request)
        let ends = tier.ends
        await world.advance(seconds: 20)
        _ = await world.answer(
            Self.request.with { $0.fields["Authorization"] = "Basic YTpi" }
        )
        await world.settle()
        #expect(origin.count == 2)
        #expect(ends.count == 1 && tier.ends == ends)
        #expect(await world.shutDown())
    }

    @Test(arguments: [RemovalScope.tag("news"), .everything, .tag("other")])
    func leaseOfAnOvertakenResponseIsFree(scope: RemovalScope) async throws {
        let tier = LeasingTier()
        let origin = HeldOrigin()
        let world = try await SimulatedCache(
            origin: origin,
            fleet: ScriptedRelay(sharing: tier).fleet
        )
        _ = await world.answer(Self.request)
        let ledger = world.cache.services.tiers.ledger
        ledger.begin(scope)
        ledger.end(scope)
        let isCovered = scope != .tag("other")
        // What is not shared for another reason gives the key up.
        let cacheControl = isCovered ? "max-age=60" : "no-store"
        origin.exchanges[0].answer(
            fields: ["Cache-Control": cacheControl, "Cache-Tag": "news"],
            body: "old"
        )
        await world.settle()
        let ending = isCovered ? SharedLease.Ending.failed : .unshareable
        #expect(tier.ends == [LeasingTier.End(number: 1, ending: ending)])
        #expect(await world.shutDown())
    }

    /// The successor of a hanging attempt still fetches for the fleet: the late response of the
    /// first one must not tell the other machines to fetch for themselves.
    @Test(arguments: [true, false])
    func lateAttemptDoesNotGiveUpTheKey(isWhole: Bool) async throws {
        let tier = LeasingTier()
        let origin = HeldOrigin(cancellation: .ignored)
        var configuration = HTTPCache.Configuration(memory: .megabytes(4))
        configuration.originLimits.maximumHeadTime = .seconds(4)
        let world = try await SimulatedCache(
            configuration: configuration,
            origin: origin,
            fleet: ScriptedRelay(sharing: tier).fleet
        )
        _ = await world.answer(Self.request)
        for _ in 0..<2 { await world.advance(seconds: 1) }
        let successor = await world.answer(Self.request)
        for _ in 0..<3 { await world.advance(seconds: 1) }
        #expect(origin.count == 2)
        let late = ManualBody()
        if isWhole {
            origin.exchanges[0].answer(fields: ["Cache-Control": "max-age=60"], body: "late")
        } else {
            origin.exchanges[0].answer(fields: ["Cache-Control": "max-age=60"], body: late)
            late.finish()
        }
        await world.settle()
        #expect(tier.ends == [LeasingTier.End(number: 1, ending: .failed)])
        origin.exchanges[1].answer(fields: ["Cache-Control": "max-age=60"], body: "new")
        await world.settle()
        #expect(successor.isComplete)
        #expect(await world.shutDown())
    }
}
