import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

@testable import CacheEngineRedis

extension PurgeApplier {
    /// Applies purges without a report of a delay.
    fileprivate func apply(_ purges: [FleetPurge]) async {
        await apply(purges, lateAfter: 10_000_000_000) {}
    }
}

/// Purges of other machines hold at once, and the bookmark waits for the storage.
@Suite(.timeLimit(.minutes(1)))
struct PurgeApplierTests {
    private let receiver = ModelReceiver()
    private let counts = FleetCounts()
    private let applier: PurgeApplier

    init() { applier = PurgeApplier(receiver, FleetSurroundings(), counts) }

    private static func mark(_ number: UInt64) -> Bookmark {
        Bookmark(incarnation: FleetPurge.ID(1), position: FleetPosition(1, number), id: nil)
    }

    /// Reads a purge and its place, as the reader does.
    private func read(_ number: Int) async {
        await applier.apply([FleetPurge(number)])
        applier.keep(Self.mark(UInt64(number)))
    }

    @Test func purgesHoldWhileTheStorageHangs() async {
        receiver.hold()
        let reading = Task {
            for number in 1...3 { await read(number) }
            await applier.doubtEverything()
        }
        #expect(await eventually { receiver.doubts == 1 })
        #expect(receiver.applied.count == 3 && receiver.kept.isEmpty)
        receiver.confirm()
        await reading.value
        #expect(await eventually { receiver.kept.last == Self.mark(3) })
        #expect(counts.applied.load(ordering: .relaxed) == 3)
        #expect(counts.notApplied.load(ordering: .relaxed) == 0)
    }

    /// The first bookmark of all is written beside the purges, and its write hangs.
    @Test func purgesHoldWhileTheBookmarkIsWritten() async {
        receiver.hold()
        applier.keep(Self.mark(0))
        await read(1)
        await read(2)
        #expect(receiver.applied.count == 2)
        receiver.confirm()
        #expect(await eventually { receiver.kept.last == Self.mark(2) })
        #expect(receiver.kept.first == Self.mark(0))
    }

    @Test func purgesBeyondTheLimitWaitForTheStorage() async {
        receiver.hold()
        let all = (1...PurgeApplier.unconfirmedCountMax).map { FleetPurge($0) }
        await applier.apply(all)
        let last = Task { await applier.apply([FleetPurge(0)]) }
        for _ in 0..<1_000 { await Task.yield() }
        #expect(receiver.applied.count == all.count)
        #expect(await eventually { receiver.waitingCount == all.count })
        // A doubt does not wait: the start of a cache waits for it.
        let doubt = Task { await applier.doubtEverything() }
        #expect(await eventually { receiver.doubts == 1 })
        #expect(receiver.applied.count == all.count)
        await doubt.value
        receiver.confirm(2)
        await last.value
        #expect(receiver.applied.last == FleetPurge(0).purge)
        receiver.confirm()
        let isOver = await eventually {
            counts.applied.load(ordering: .relaxed) == all.count + 1
        }
        #expect(isOver)
    }

    @Test func purgeThatIsNotDurableEndsTheKeeping() async {
        receiver.hold()
        await read(1)
        #expect(await eventually { receiver.waitingCount == 1 })
        receiver.confirm(1, isDurable: false)
        #expect(await eventually { counts.notApplied.load(ordering: .relaxed) == 1 })
        receiver.confirm()
        await read(2)
        #expect(await eventually { counts.applied.load(ordering: .relaxed) == 1 })
        for _ in 0..<1_000 { await Task.yield() }
        #expect(receiver.kept.isEmpty)
    }

    // MARK: The bookmark as a value

    @Test func bookmarkWaitsForThePurgesUpToIt() {
        var confirmations = Confirmations()
        let first = confirmations.begin()
        let second = confirmations.begin()
        confirmations.keep(Self.mark(2))
        #expect(confirmations.next() == nil)
        let third = confirmations.begin()
        confirmations.keep(Self.mark(3))
        confirmations.end(second, isDurable: true)
        #expect(confirmations.next() == nil)
        confirmations.end(first, isDurable: true)
        // The third one came later.
        #expect(confirmations.next() == Self.mark(2))
        #expect(confirmations.next() == nil, "one is written at a time")
        confirmations.noteWritten()
        #expect(confirmations.next() == nil)
        confirmations.end(third, isDurable: true)
        #expect(confirmations.next() == Self.mark(3))
        confirmations.noteWritten()
        #expect(confirmations.next() == nil && confirmations.count == 0)
    }

    /// Purges come without a pause, and there is always one that is not confirmed.
    @Test func bookmarksAreKeptThoughPurgesNeverPause() {
        var confirmations = Confirmations()
        var open = [confirmations.begin()]
        var kept: [Bookmark] = []
        for number in 1...100 {
            open.append(confirmations.begin())
            confirmations.keep(Self.mark(UInt64(number)))
            confirmations.end(open.removeFirst(), isDurable: true)
            while let bookmark = confirmations.next() {
                kept.append(bookmark)
                confirmations.noteWritten()
            }
        }
        #expect(kept.count > 40)
        #expect(kept.map(\.position) == kept.map(\.position).sorted())
    }

    @Test func failedPurgeKeepsEveryLaterBookmarkBack() {
        var confirmations = Confirmations()
        let first = confirmations.begin()
        confirmations.keep(Self.mark(1))
        let second = confirmations.begin()
        confirmations.keep(Self.mark(2))
        confirmations.end(second, isDurable: false)
        confirmations.end(first, isDurable: true)
        #expect(confirmations.next() == nil)
        confirmations.keep(Self.mark(3))
        #expect(confirmations.next() == nil)
    }
}
