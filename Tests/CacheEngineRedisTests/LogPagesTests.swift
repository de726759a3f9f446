import CacheEngine
import Testing

@testable import CacheEngineRedis

/// The pages of a log whose front is cut off while it is read.
@Suite struct LogPagesTests {
    private static func page(_ numbers: ClosedRange<Int>) -> [LogEntry] {
        numbers.map {
            LogEntry(
                position: FleetPosition(1, UInt64($0)),
                previous: FleetPosition(1, UInt64($0 - 1)),
                purge: FleetPurge($0)
            )
        }
    }

    @Test func pagesThatMeetAreJoined() {
        var pages = LogPages()
        for page in [1...3, 4...6] { pages.add(Self.page(page)) }
        pages.add([])
        #expect(pages.entries == Self.page(1...6))
    }

    /// The entries from 4 to 6 were cut off before they were read.
    @Test func pagesThatDoNotMeetBeginAnew() {
        var pages = LogPages()
        for page in [1...3, 7...9, 10...10] { pages.add(Self.page(page)) }
        #expect(pages.entries == Self.page(7...10))
        #expect(pages.entries.first?.previous == FleetPosition(1, 6))
    }
}
