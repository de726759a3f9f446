import CacheTestSupport
import Testing

@testable import CacheEngine

/// The rules of the queue in front of a store, without a store or a clock.
@Suite struct StoreBacklogTests {
    private static let failure = CacheError(.storageFailed, detail: "On purpose")

    private static func entry(_ key: String, _ body: String = "") -> StoredEntry {
        QueuedStoreTests.entry(key, body)
    }

    private static func backlog(_ change: (inout StoreLimits) -> Void = { _ in }) -> StoreBacklog {
        var limits = StoreLimits()
        change(&limits)
        return StoreBacklog(limits: limits)
    }

    private static func next(_ backlog: inout StoreBacklog) throws -> StoreBacklog.Start {
        let next = backlog.next()
        return try #require(next)
    }

    private static func isAbsent(_ reading: StoreBacklog.Reading) -> Bool {
        if case .absent = reading { return true }
        return false
    }

    private static func isBehind(_ reading: StoreBacklog.Reading) -> Bool {
        if case .behind = reading { return true }
        return false
    }

    @Test func aFailedOperationBarsItsKeyUntilALaterOneSucceeds() throws {
        var backlog = Self.backlog()
        let entry = Self.entry("k")
        _ = backlog.store(entry)
        let store = try Self.next(&backlog)
        backlog.ended(store.hash, Self.failure, nowNanoseconds: 0)
        #expect(Self.isAbsent(backlog.reading(entry.key)))
        let none = backlog.next()
        #expect(none == nil, "It is put off")
        backlog.wake(nowNanoseconds: backlog.firstDueNanoseconds)
        let removal = try Self.next(&backlog)
        #expect(removal.operation.isRemoval)
        #expect(Self.isAbsent(backlog.reading(entry.key)))
        backlog.ended(removal.hash, nil, nowNanoseconds: 0)
        #expect(Self.isBehind(backlog.reading(entry.key)))
        #expect(backlog.owedCount == 0 && backlog.records.isEmpty && backlog.queuedBytes == 0)
    }

    @Test func pausesBetweenAttemptsGrowToTheirLimit() throws {
        var backlog = Self.backlog()
        _ = backlog.remove(Self.entry("k").key)
        var pauses: [UInt64] = []
        var now: UInt64 = 0
        for _ in 0..<12 {
            let removal = try Self.next(&backlog)
            backlog.ended(removal.hash, Self.failure, nowNanoseconds: now)
            pauses.append(backlog.firstDueNanoseconds - now)
            now = backlog.firstDueNanoseconds
            backlog.wake(nowNanoseconds: now)
        }
        #expect(pauses[0] == 100_000_000 && pauses[1] == 200_000_000)
        #expect(pauses.last == 30_000_000_000)
    }

    @Test func aLostStoreIsFollowedByARemovalWheneverItReturns() throws {
        var backlog = Self.backlog()
        let entry = Self.entry("k")
        _ = backlog.store(entry)
        let store = try Self.next(&backlog)
        backlog.lost(store.hash, Self.failure)
        #expect(Self.isAbsent(backlog.reading(entry.key)))
        let outcome = backlog.store(Self.entry("k", "newer")).0
        #expect(outcome == .refused(.deviceFailed))
        let none = backlog.next()
        #expect(none == nil, "Nothing overtakes it")
        backlog.ended(store.hash, nil, nowNanoseconds: 0)
        #expect(Self.isAbsent(backlog.reading(entry.key)))
        let removal = try Self.next(&backlog)
        #expect(removal.operation.isRemoval)
        backlog.ended(removal.hash, nil, nowNanoseconds: 0)
        #expect(Self.isBehind(backlog.reading(entry.key)))
        #expect(backlog.runningCount == 0 && backlog.owedCount == 0)
    }

    @Test func operationsOfSeveralKeysRunAndOneOfEach() {
        var backlog = Self.backlog { $0.maximumOperations = 3 }
        for number in 0..<5 { _ = backlog.store(Self.entry("k\(number)")) }
        _ = backlog.store(Self.entry("k0", "again"))
        var started: [StoreBacklog.Start] = []
        while let next = backlog.next() { started.append(next) }
        #expect(Set(started.map(\.hash)).count == 3)
        for start in started { backlog.ended(start.hash, nil, nowNanoseconds: 0) }
        let none = backlog.next()
        #expect(none != nil)
    }

    @Test func moreBarsThanTheLimitBarTheStoreAsAWhole() throws {
        var backlog = Self.backlog { $0.maximumBarredKeys = 2 }
        let other = Self.entry("other").key
        for number in 0..<3 {
            #expect(Self.isBehind(backlog.reading(other)))
            _ = backlog.remove(Self.entry("k\(number)").key)
            let removal = try Self.next(&backlog)
            backlog.ended(removal.hash, Self.failure, nowNanoseconds: 0)
        }
        #expect(Self.isAbsent(backlog.reading(other)))
        let news = backlog.takeNews()
        #expect(news.isBarred)
        #expect(backlog.records.isEmpty)
        let outcome = backlog.store(Self.entry("new")).0
        #expect(outcome == .refused(.deviceFailed))
        #expect(backlog.bars.due(nowNanoseconds: 0) == [.everything])
        let number = backlog.bars.begin(.everything)
        backlog.bars.end(.everything, number, hasFailed: false, nowNanoseconds: 0)
        #expect(Self.isBehind(backlog.reading(other)))
        #expect(backlog.owedCount == 0)
    }

    @Test func moreKeysThanTheLimitBarTheStoreAsAWhole() {
        var backlog = Self.backlog { $0.maximumQueuedKeys = 2 }
        for number in 0..<3 { _ = backlog.remove(Self.entry("k\(number)").key) }
        #expect(backlog.bars.owesEverything)
        #expect(Self.isAbsent(backlog.reading(Self.entry("other").key)))
    }

    @Test func storeUnderWayDuringAFullBarIsFollowedByARemoval() throws {
        var backlog = Self.backlog { $0.maximumBarredKeys = 0 }
        let entry = Self.entry("running")
        _ = backlog.store(entry)
        let store = try Self.next(&backlog)
        _ = backlog.remove(Self.entry("k").key)
        let removal = try Self.next(&backlog)
        backlog.ended(removal.hash, Self.failure, nowNanoseconds: 0)
        let number = backlog.bars.begin(.everything)
        backlog.bars.end(.everything, number, hasFailed: false, nowNanoseconds: 0)
        #expect(Self.isAbsent(backlog.reading(entry.key)))
        backlog.ended(store.hash, nil, nowNanoseconds: 0)
        let last = try Self.next(&backlog)
        #expect(last.operation.isRemoval)
    }

    @Test func aScopeIsBarredFromItsBeginningUntilARemovalSucceeds() throws {
        var bars = ScopeBars(limits: StoreLimits())
        let entry = Self.entry("k")
        let first = bars.begin(.everything)
        #expect(bars.covers(entry) && !bars.owesEverything)
        bars.end(.everything, first, hasFailed: true, nowNanoseconds: 0)
        #expect(bars.covers(entry) && bars.owesEverything)
        let due = try #require(bars.firstDueNanoseconds)
        #expect(bars.due(nowNanoseconds: due - 1).isEmpty)
        #expect(bars.due(nowNanoseconds: due) == [.everything])
        let second = bars.begin(.everything)
        let third = bars.begin(.everything)
        bars.end(.everything, second, hasFailed: false, nowNanoseconds: 0)
        #expect(bars.covers(entry), "A later one is under way")
        bars.end(.everything, third, hasFailed: false, nowNanoseconds: 0)
        #expect(!bars.covers(entry))
    }

    @Test func anAttemptThatALaterOneReplacedEndsNoOther() {
        var bars = ScopeBars(limits: StoreLimits())
        let entry = Self.entry("k")
        let first = bars.begin(.everything)
        let second = bars.begin(.everything)
        bars.end(.everything, second, hasFailed: false, nowNanoseconds: 0)
        #expect(!bars.covers(entry))
        let third = bars.begin(.everything)
        bars.end(.everything, first, hasFailed: true, nowNanoseconds: 0)
        #expect(bars.covers(entry) && bars.due(nowNanoseconds: .max).isEmpty, "One is under way")
        bars.end(.everything, third, hasFailed: false, nowNanoseconds: 0)
        #expect(!bars.covers(entry) && bars.owedCount == 0)
    }

    /// The two tags have different bytes, and Unicode calls them equal.
    @Test func removalOfOneTagEndsNoBarOfAnother() {
        var bars = ScopeBars(limits: StoreLimits())
        let (composed, decomposed) = (RemovalScope.tag("\u{e9}"), RemovalScope.tag("e\u{301}"))
        let first = bars.begin(composed)
        bars.end(composed, first, hasFailed: true, nowNanoseconds: 0)
        let second = bars.begin(decomposed)
        #expect(bars.scopes.count == 2)
        bars.end(decomposed, second, hasFailed: false, nowNanoseconds: 0)
        #expect(bars.owedCount == 1 && bars.scopes == [composed])
    }

    @Test func callsPastTheirLimitCountUntilTheyReturn() throws {
        var limits = StoreLimits()
        limits.maximumAbandoned = 2
        limits.maximumLookUps = 2
        var calls = OpenCalls(limits: limits)
        let ids = (0..<2).compactMap { _ in
            calls.begin(untilNanoseconds: 10, isLookUp: true) {}
        }
        #expect(ids.count == 2)
        do {
            let id = calls.begin(untilNanoseconds: 10, isLookUp: true) {}
            #expect(id == nil, "Too many look-ups")
        }
        let begun = calls.begin(untilNanoseconds: 20, isLookUp: false) {}
        let other = try #require(begun)
        let late = calls.expire(nowNanoseconds: 10)
        #expect(late.count == 2)
        #expect(calls.isOut)
        do {
            let id = calls.begin(untilNanoseconds: 30, isLookUp: false) {}
            #expect(id == nil)
        }
        calls.end(ids[0])
        #expect(!calls.isOut)
        do {
            let id = calls.begin(untilNanoseconds: 30, isLookUp: true) {}
            #expect(id != nil)
        }
        calls.end(other)
        #expect(calls.firstDeadlineNanoseconds == 30)
    }
}
