import CacheTestSupport
import Testing

@testable import CacheProxy

/// The machine of a connection that begins with a PROXY header.
@Suite struct AnnouncingTests {
    typealias Machine = ConnectionMachine
    typealias Event = ConnectionMachineTests.Event

    static func machine() -> Machine { Machine(discardedBytesMax: 100, beginsAs: .announcing) }

    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let events: [Event]
        let last: String
        let course: Machine.Course
        var testDescription: String { name }

        init(_ name: String, _ events: [Event], _ last: String, _ course: Machine.Course) {
            self.name = name
            self.events = events
            self.last = last
            self.course = course
        }
    }

    static let piece: [Event] = [.readable, .read, .inputHeld]
    static let header: [Event] = piece + [.announced]

    static let rows: [Row] = [
        Row("waits", [.settled], "wait keep", .announcing),
        Row("a piece prolongs nothing", piece, "keep", .announcing),
        Row("waits for the rest", piece + [.settled], "wait keep", .announcing),
        Row("silent", [.late], "refuseHeader", .announcing),
        Row("late", piece + [.settled, .late], "refuseHeader", .announcing),
        Row("ends without a byte", [.ending, .inputEnded], "close", .announcing),
        Row("ends in the header", piece + [.inputEnded], "refuseHeader", .announcing),
        Row("silent at the end of a drain", [.settled(endsIdle: true)], "close", .announcing),
        Row(
            "in the header at the end of a drain",
            piece + [.settled(endsIdle: true)],
            "wait keep",
            .announcing
        ),
        Row("header", header + [.heldInputUsed, .settled], "wait keep", .open),
        Row("head begins behind it", header + [.inputHeld], "start(head)", .open),
        Row("head is late", header + [.inputHeld, .late], "refuse", .open),
        Row("no request behind it", header + [.heldInputUsed, .late], "close", .open),
        Row(
            "ends behind it",
            header + [.heldInputUsed, .inputEnded, .settled],
            "close",
            .open
        ),
        Row(
            "idle after a request",
            header + [.inputHeld, .request, .answer, .heldInputUsed, .responseEnded, .settled],
            "wait start(idle)",
            .open
        ),
    ]

    @Test(arguments: rows)
    func everyArrowLeadsWhereTheTableSays(_ row: Row) {
        var machine = Self.machine()
        var last = ""
        for event in row.events { last = ConnectionMachineTests.apply(event, to: &machine) }
        #expect(ConnectionMachineTests.plain(last) == row.last)
        #expect(machine.course == row.course)
    }

    @Test func awaitedHeaderIsReadAndItsConnectionMayMakeRoom() {
        var machine = Self.machine()
        #expect(machine.usesInput(hasRoom: false) && machine.holdsInput)
        #expect(machine.idleDeadline == .head)
        machine.announced()
        #expect(!machine.usesInput(hasRoom: false) && machine.idleDeadline == .head)
    }

    /// A connection with any events ends, opens, or still has the limit of its head.
    @Test(arguments: 0..<64 as Range<UInt64>)
    func headerIsNeverAwaitedWithoutItsLimit(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var machine = Self.machine()
        let events: [Event] = [
            .readable, .ending, .read, .readNothing, .inputHeld, .settled, .settled(endsIdle: true),
        ]
        for _ in 0..<200 {
            let event = events[Int.random(in: events.indices, using: &random)]
            let last = ConnectionMachineTests.plain(
                ConnectionMachineTests.apply(event, to: &machine)
            )
            #expect(machine.course == .announcing && machine.deadline == .head)
            #expect(!last.contains("start") && !last.contains("stop"))
        }
        #expect(
            machine.deadlinePassed(isResponseRunning: false, takesOutput: false) == .refuseHeader
        )
        #expect(machine.close(endsBody: false) == .close)
    }

    @Test func equalReportsAreWrittenOnceInAPeriod() {
        var limit = ReportLimit()
        let period = ReportLimit.periodMilliseconds
        #expect(limit.admit(now: 5) == 0)
        for _ in 0..<3 { #expect(limit.admit(now: 5 + period - 1) == nil) }
        #expect(limit.admit(now: 5 + period) == 3)
        #expect(limit.admit(now: 5 + 2 * period) == 0)
        #expect(ReportLimit.note(skipped: 0) == "")
    }
}
