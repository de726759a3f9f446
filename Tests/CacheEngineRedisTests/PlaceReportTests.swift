import CacheEngine
import RESP
import Testing

@testable import CacheEngineRedis

/// The places that machines report, and who has applied a purge.
@Suite struct PlaceReportTests {
    private static let log = FleetPurge.ID(1)
    private static let now: Int64 = 1_700_000_000_000

    private static func report(
        _ position: FleetPosition,
        in log: FleetPurge.ID = log,
        ago milliseconds: Int64 = 0
    ) -> PlaceReport {
        PlaceReport(
            machine: "m",
            incarnation: log,
            position: position,
            milliseconds: now - milliseconds
        )
    }

    @Test func reportIsReadBack() throws {
        let report = Self.report(FleetPosition(3, 77), ago: 5)
        #expect(PlaceReport(machine: "m", report.text) == report)
        for count in 0..<report.text.count {
            let part = String(report.text.prefix(count))
            // Fewer digits of the time are another time.
            guard part.split(separator: " ").count < 3 else { continue }
            #expect(PlaceReport(machine: "m", part) == nil, "\(part)")
        }
        let hex = Bookmark.hex(Self.log.bytes)
        for text in ["", "a b c", "\(hex) 1-1 -5", "\(hex) 1 5", "\(hex) 1-1 5 6", "xx 1-1 5"] {
            #expect(PlaceReport(machine: "m", text) == nil, "\(text)")
        }
    }

    /// The purge is at 2-10.
    @Test(arguments: [
        ([report(FleetPosition(2, 10)), report(FleetPosition(2, 11))], 2, 2),
        ([report(FleetPosition(2, 10)), report(FleetPosition(2, 9))], 2, 1),
        // A later epoch: the log may have lost the purge.
        ([report(FleetPosition(3, 10))], 1, 0),
        ([report(FleetPosition(1, 99))], 1, 0),
        // Another log.
        ([report(FleetPosition(2, 10), in: FleetPurge.ID(2))], 1, 0),
        // A machine that is gone.
        ([report(FleetPosition(2, 10)), report(FleetPosition(2, 9), ago: 10_001)], 1, 1),
        ([report(FleetPosition(2, 10)), report(FleetPosition(2, 9), ago: 9_999)], 2, 1),
        // A time of a server before this one.
        ([report(FleetPosition(2, 10)), report(FleetPosition(2, 9), ago: -9_999)], 2, 1),
        ([report(FleetPosition(2, 10)), report(FleetPosition(2, 9), ago: -10_001)], 1, 1),
        ([], 0, 0),
    ])
    func reachCountsMachinesThatAreAlive(_ row: ([PlaceReport], Int, Int)) {
        var reports = PlaceReports()
        reports.reports = row.0
        let reach = reports.reach(of: FleetPosition(2, 10), in: Self.log, at: Self.now)
        #expect(reach == FleetReach(machines: row.1, applied: row.2))
        #expect(reach.isComplete == (row.1 == row.2 && row.1 > 0))
    }

    @Test func replyIsRead() throws {
        let report = Self.report(FleetPosition(2, 10))
        let bulk = { (text: String) in RESPValue.bulk(Array(text.utf8)) }
        let reply = RESPValue.array([bulk("m"), bulk(report.text), bulk("x"), bulk("later")])
        let reports = try #require(PlaceReports(reply))
        #expect(reports.reports == [report])
        #expect(reports.unreadable == [Array("x".utf8): Array("later".utf8)])
        let reach = reports.reach(of: FleetPosition(2, 10), in: Self.log, at: Self.now)
        #expect(reach == FleetReach(machines: 2, applied: 1))
        #expect(reports.gone(at: Self.now).isEmpty)
        #expect(reports.gone(at: Self.now + 10_001) == ["m"])
        #expect(PlaceReports(.array([bulk("m")])) == nil)
        #expect(PlaceReports(.array([.integer(1), bulk("")])) == nil)
        #expect(PlaceReports(.nilBulk) == nil)
        #expect(PlaceReports(.array([])) == PlaceReports())
    }

    /// A later version writes its own form of reports.
    @Test func fieldWithoutAReportCountsUntilItStays() {
        let second: UInt64 = 1_000_000_000
        let (still, moving) = (Array("still".utf8), Array("moving".utf8))
        var known = UnreadableReports()
        for moment in 0...20 as ClosedRange<UInt64> {
            var reports = PlaceReports()
            reports.unreadable = [still: Array("v2".utf8), moving: Array("v2 \(moment)".utf8)]
            let gone = known.sift(&reports, nowNanoseconds: moment * second)
            #expect(gone == (moment < 10 ? [] : [still]))
            let names = moment < 10 ? [still, moving] : [moving]
            #expect(Set(reports.unreadable.keys) == Set(names))
        }
        // It is written again after it had been away.
        var none = PlaceReports()
        #expect(known.sift(&none, nowNanoseconds: 21 * second).isEmpty)
        var again = PlaceReports()
        again.unreadable = [still: Array("v2".utf8)]
        #expect(known.sift(&again, nowNanoseconds: 22 * second).isEmpty)
        #expect(again.unreadable.count == 1)
    }
}
