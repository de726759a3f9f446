import CacheTestSupport
import HTTPCaching
import Testing

@testable import CacheEngine

/// Requests that leave a flight which was joined under the key of a variant.
@Suite struct EscapeKeyTests {
    /// A shared store that knows how each resource varies, and holds none of the variants.
    private struct IndexTier: SharedTier {
        func look<Value: Sendable>(
            _ key: SharedKey,
            _ clock: any CacheClock,
            _ budget: inout SharedBudget,
            _ use: @Sendable (StoredEntry) -> Value?
        ) async -> SharedLook<Value> {
            let fields: HeaderFields = ["Vary": "Accept-Language"]
            guard key.bytes == key.resource, case .selecting(let vary) = Vary.read(fields.section)
            else { return .alone(older: nil) }
            let blueprint = EntryBuilder.blueprint(
                VariantIndex(vary, nonce: 7),
                VariantRoll(sinceSeconds: clock.nowSeconds),
                under: RequestKey(
                    bytes: key.bytes,
                    hash: KeyHash(placement: 0, identity: 0)
                ),
                isPinned: false,
                nowSeconds: clock.nowSeconds
            )
            let index = blueprint.makeEntry(body: EmptyCollection<ByteChunk>(), sequence: 0)
            guard let value = use(StoredEntry(index)) else { return .alone(older: nil) }
            return .found(value)
        }

        func budget(startedNanoseconds: UInt64) -> SharedBudget {
            SharedBudget(startedNanoseconds: startedNanoseconds, spentNanosecondsMax: .max)
        }

        func end(_ lease: SharedLease, _ ending: SharedLease.Ending) {}
        func publish(_ copies: [SharedCopy], onlyIf isPermitted: () -> Bool) {}
        func hide(_ key: SharedKey) {}
        func forget(_ key: SharedKey) {}
        func forgetEverything() {}
    }

    /// The index of another machine gives the flight a second key before its head arrives.
    @Test func s11AnEscapeIsReleasedUnderTheKeyThatCountedIt() async throws {
        let origin = HeldOrigin()
        var configuration = HTTPCache.Configuration(memory: .megabytes(4))
        configuration.collapsing.maximumWait = .seconds(2)
        configuration.collapsing.maximumEscapes = 1
        configuration.collapsing.maximumAge = .seconds(1_000)
        configuration.originLimits.maximumHeadTime = .seconds(1_000)
        let world = try await SimulatedCache(
            configuration: configuration,
            origin: origin,
            fleet: ScriptedRelay(sharing: IndexTier()).fleet
        )
        let request = CacheRequest.speaking("de")
        let hung = await world.answer(request)
        let waiters = (0..<3).map { _ in world.ask(request) }
        await world.settle()
        #expect(origin.count == 1)
        for number in 1...3 {
            await world.advance(seconds: 3)
            #expect(origin.count == 1 + number)
            try #require(origin.exchanges.dropFirst(number).first).fail()
            await world.settle()
        }
        #expect(waiters.allSatisfy { $0.errorCode == .originFailed })
        #expect(await world.statistics.escapes == ["waitedTooLong": 3])
        origin.exchanges[0].answer(fields: UnshareableTests.varying, body: "de")
        await world.settle()
        #expect(hung.isComplete && hung.text == "de")
        #expect(await world.shutDown())
    }
}
