import CacheEngine
import CacheTestSupport
import Testing

/// Each nemesis performs the misdeeds of its plan, and no others.
@Suite(.timeLimit(.minutes(1))) struct NemesisTests {
    private static func entry(_ text: String = "k") async throws -> StoredEntry {
        let honest = InMemoryStore()
        let scene = try await StoreScene(on: honest)
        _ = await scene.body(CacheRequest(url: "http://example.com/\(text)"))
        #expect(await scene.simulation.shutDown())
        return try #require(honest.first)
    }

    @Test func aHarmlessNemesisKeepsEveryPromise() async {
        let kit = StoreConformance(reopen: { $0 }) { NemesisStore(InMemoryStore()) }
        #expect(await kit.run() == [])
    }

    @Test(arguments: NemesisPlan.everyMisdeed)
    func kitOrCallerNoticesEveryMisdeed(misdeed: Misdeed) async throws {
        guard !misdeed.takesTime else { return }
        let kit = StoreConformance(seeds: 0..<2) {
            NemesisStore(InMemoryStore(), plan: .scripted { _ in misdeed })
        }
        // A store that damages its entries only forgets: damaged entries are read as `nil`.
        #expect(await !kit.run().isEmpty || misdeed == .lies(.damages))
    }

    @Test func aCallThatThrowsBeforeHasNoEffectAndOneThatThrowsAfterHas() async throws {
        let (honest, entry) = (InMemoryStore(), try await Self.entry())
        let store = NemesisStore(honest, plan: .scripted { _ in .throwsBefore })
        await #expect(throws: CacheError.self) { try await store.store(entry) }
        #expect(honest.count == 0)
        store.follow(.scripted { _ in .throwsAfter })
        await #expect(throws: CacheError.self) { try await store.store(entry) }
        #expect(honest.count == 1)
        await #expect(throws: CacheError.self) { try await store.remove(entry.key) }
        #expect(honest.count == 0)
    }

    @Test(arguments: [true, false], [Misdeed.Cancellation.honoured, .ignored])
    func aHangEndsWithItsReleaseOrItsCancellation(
        hasEffectFirst: Bool,
        cancellation: Misdeed.Cancellation
    ) async throws {
        let (honest, entry) = (InMemoryStore(), try await Self.entry())
        let misdeed = hasEffectFirst ? Misdeed.hangsAfter(cancellation) : .hangsBefore(cancellation)
        let store = NemesisStore(honest, plan: .scripted { _ in misdeed })
        let executor = SeededExecutor(seed: 1)
        func start() -> Task<Bool, Never> {
            executor.start { (try? await store.store(entry)) != nil }
        }
        let cancelled = start()
        await executor.settle()
        #expect(store.hungCount == 1)
        #expect(honest.count == (hasEffectFirst ? 1 : 0))
        cancelled.cancel()
        await executor.settle()
        #expect(store.hungCount == (cancellation == .honoured ? 0 : 1))
        let released = start()
        await executor.settle()
        store.release()
        await executor.settle()
        #expect(await released.value)
        #expect(await cancelled.value == (cancellation == .ignored))
        #expect(honest.count == 1)
    }

    @Test func aSlowCallTakesTheTimeOfTheClock() async throws {
        let clock = TestClock()
        let store = NemesisStore(
            InMemoryStore(),
            clock: clock,
            plan: .scripted { _ in .isSlow(seconds: 2) }
        )
        let executor = SeededExecutor(seed: 1)
        let over = Attempt()
        executor.start {
            try? await store.flush()
            over.end(.success(()))
        }
        await executor.settle()
        clock.advance(seconds: 1.9)
        await executor.settle()
        #expect(!over.hasEnded)
        clock.advance(seconds: 0.2)
        await executor.settle()
        #expect(over.hasEnded)
    }

    @Test func aStoreThatLiesGivesAnotherKeysEntryOrADamagedOne() async throws {
        let (honest, entry) = (InMemoryStore(), try await Self.entry())
        _ = try await honest.store(entry)
        let store = NemesisStore(honest, plan: .scripted { _ in .lies(.mixesUp) })
        let other = try #require(try await store.entry(for: entry.key))
        #expect(other.key != entry.key)
        store.follow(.scripted { _ in .lies(.miscounts) })
        #expect(await store.usage().entries < 0)
        #expect(try await store.removeAll(in: .tag("nothing")).entries == .max)
        #expect(store.calls.map(\.method) == [.entry, .usage, .removeAll])
    }

    @Test func sameSeedGivesTheSameRun() async throws {
        let entry = try await Self.entry()
        func outcomes(_ seed: UInt64) async -> [Bool] {
            let plan = NemesisPlan.seeded(seed, oneIn: 2, of: [.throwsBefore, .throwsAfter])
            let store = NemesisStore(InMemoryStore(), plan: plan)
            var outcomes: [Bool] = []
            for _ in 0..<64 { outcomes.append((try? await store.store(entry)) != nil) }
            return outcomes
        }
        let first = await outcomes(5)
        #expect(await outcomes(5) == first)
        #expect(await outcomes(6) != first)
        #expect(first.contains(true) && first.contains(false))
    }

    @Test func anOriginLiesAboutLengthsBodiesAndConfirmations() async throws {
        let request = OriginRequest(url: "http://example.com/")
        let origin = NemesisOrigin(ScriptedOrigin(), plan: .scripted { _ in .lies(.mixesUp) })
        #expect(try await origin.fetch(request).status == 304)
        origin.follow(.scripted { _ in .lies(.miscounts) })
        #expect(try await origin.fetch(request).fields["Content-Length"] == "10000000")
        origin.follow(.scripted { _ in .lies(.damages) })
        let broken = try await origin.fetch(request)
        await #expect(throws: CacheError.self) { try await broken.body.collect() }
        origin.follow(.scripted { _ in .throwsBefore })
        let error = await #expect(throws: CacheError.self) { try await origin.fetch(request) }
        #expect(error?.code == .originFailed)
        origin.follow(.harmless)
        #expect(try await origin.fetch(request).status == 200)
        #expect(origin.calls.count == 5)
        #expect(origin.calls.last?.number == 5)
    }
}

extension Misdeed {
    /// Whether a call waits for a release or for the clock.
    fileprivate var takesTime: Bool {
        switch self {
        case .hangsBefore, .hangsAfter, .isSlow: true
        case .none, .throwsBefore, .throwsAfter, .lies: false
        }
    }
}
