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
        }

        private let state = Mutex(State())

        var ends: [End] { state.withLock { $0.ends } }
        /// Whether each copy was permitted.
        var permissions: [Bool] { state.withLock { $0.permissions } }

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

        func forget(_ key: SharedKey) {}
        func forgetEverything() {}
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
        tier.onPublish { ledger.begin(.storedBefore(seconds: .max)) }
        _ = await world.answer(CacheRequest(url: "http://example.com/other"))
        ledger.end(.storedBefore(seconds: .max))
        #expect(tier.permissions == [true, false])
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
