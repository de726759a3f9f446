import CacheTestSupport
import Testing

@testable import CacheProxy

/// The machine of a connection: a table of its arrows, and random walks that never wait for a
/// client without a limit.
@Suite struct ConnectionMachineTests {
    typealias Machine = ConnectionMachine

    /// One event, with what it must return where that matters.
    enum Event: Sendable {
        case socket(readable: Bool, writable: Bool, ending: Bool)
        case read(isShort: Bool)
        case readNothing
        case inputEnded
        case inputHeld
        case heldInputUsed
        case announced
        case discarded(Int)
        case request
        case pending
        case content(isAwaited: Bool)
        case contentCame
        case contentFilled
        case contentWanted
        case contentEnded
        case contentFailed(hasResponseBegun: Bool)
        case refused
        case answer(mayPersist: Bool, isUnasked: Bool, isDraining: Bool, contentRest: Int = 0)
        case responseBroken
        case responseEnded
        case queued
        case blocked
        case sent(hasMore: Bool)
        case settled(endsIdle: Bool)
        case late(isResponseRunning: Bool, takesOutput: Bool = false)

        static let readable = Event.socket(readable: true, writable: false, ending: false)
        static let ending = Event.socket(readable: true, writable: false, ending: true)
        static let read = Event.read(isShort: true)
        static let answer = answer(mayPersist: true, isUnasked: false, isDraining: false)
        static let lastAnswer = answer(mayPersist: false, isUnasked: false, isDraining: false)
        static let settled = Event.settled(endsIdle: false)
        static let late = Event.late(isResponseRunning: false)
    }

    @discardableResult
    static func apply(_ event: Event, to machine: inout Machine) -> String {
        switch event {
        case .socket(let readable, let writable, let ending):
            machine.socketChanged(isReadable: readable, isWritable: writable, isEnding: ending)
        case .read(let isShort): machine.read(isShort: isShort)
        case .readNothing: machine.readNothing()
        case .inputEnded: return "\(machine.inputEnded())"
        case .inputHeld: return "\(machine.inputHeld())"
        case .heldInputUsed: machine.heldInputUsed()
        case .announced: machine.announced()
        case .discarded(let count): machine.discarded(count)
        case .request: machine.requestCame()
        case .pending: return "\(machine.responsePending())"
        case .content(let isAwaited): return "\(machine.contentBegan(isAwaited: isAwaited))"
        case .contentCame: return "\(machine.contentCame())"
        case .contentFilled: return "\(machine.contentFilled())"
        case .contentWanted: return "\(machine.contentWanted())"
        case .contentEnded: return "\(machine.contentEnded())"
        case .contentFailed(let hasBegun):
            return "\(machine.contentFailed(hasResponseBegun: hasBegun))"
        case .refused: machine.refused()
        case .answer(let mayPersist, let isUnasked, let isDraining, let contentRest):
            let facts = Machine.PersistenceFacts(
                mayPersist: mayPersist,
                leavesContentUnasked: isUnasked,
                contentRest: contentRest,
                isDraining: isDraining
            )
            return machine.responseBegan(facts) ? "goesOn" : "ends"
        case .responseBroken: machine.responseBroken()
        case .responseEnded: return "\(machine.responseEnded())"
        case .queued: return "\(machine.outputQueued())"
        case .blocked: machine.outputBlocked()
        case .sent(let hasMore): return "\(machine.outputSent(hasMore: hasMore))"
        case .settled(let endsIdle):
            switch machine.settled(endsIdle: endsIdle) {
            case .wait(let change): return "wait \(change)"
            case .linger(let change): return "linger \(change)"
            case .close: return "close"
            }
        case .late(let isRunning, let takesOutput):
            let action = machine.deadlinePassed(
                isResponseRunning: isRunning,
                takesOutput: takesOutput
            )
            return "\(action)"
        }
        return ""
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        var events: [Event]
        /// What the last event returns, without module and type names.
        var last: String
        var readsOn: Bool
        var testDescription: String { name }

        init(_ name: String, _ events: [Event], _ last: String, readsOn: Bool) {
            self.name = name
            self.events = events
            self.last = last
            self.readsOn = readsOn
        }
    }

    /// `start(ConnectionMachine.Deadline.idle)` without the names of types.
    static func plain(_ text: String) -> String {
        text.replacing(#/[A-Za-z]+\.(?=[A-Za-z])/#, with: "")
    }

    static let hit: [Event] = [.readable, .read, .request, .answer, .responseEnded]
    static let exchange: [Event] = [.readable, .read, .request, .pending]
    static let upload: [Event] = exchange + [.content(isAwaited: true)]
    static let refusal: [Event] = [.request, .refused, .lastAnswer, .responseEnded]

    @Test(arguments: keepAlive + draining + halfClosed + content + output + late)
    func everyArrowLeadsWhereTheTableSays(_ row: Row) {
        var machine = Machine(discardedBytesMax: 100)
        var last = ""
        for event in row.events { last = Self.apply(event, to: &machine) }
        #expect(Self.plain(last) == row.last)
        // A close is carried out by the worker.
        if last == "close" { _ = machine.close(endsBody: false) }
        let readsOn = row.last == "close" ? false : row.readsOn
        #expect(machine.usesInput(hasRoom: true) == readsOn)
    }

    @Test func fullQueueHoldsRequestsBackButNoContent() {
        var machine = Machine(discardedBytesMax: 100)
        #expect(!machine.usesInput(hasRoom: false))
        for event in Self.upload { Self.apply(event, to: &machine) }
        #expect(machine.usesInput(hasRoom: false))
    }

    @Test(arguments: [
        (["running"], Machine.CloseAction.reset), (["running", "ended"], .close),
        (["running", "ended", "queued"], .reset), ([], .close),
    ])
    func unsentBodyEndsWithAReset(_ row: ([String], Machine.CloseAction)) {
        var machine = Machine(discardedBytesMax: 100)
        if row.0.contains("running") {
            for event in Self.exchange + [.lastAnswer] { Self.apply(event, to: &machine) }
        }
        if row.0.contains("ended") { Self.apply(.responseEnded, to: &machine) }
        if row.0.contains("queued") { Self.apply(.queued, to: &machine) }
        #expect(machine.close(endsBody: true) == row.1)
        #expect(machine.close(endsBody: true) == .nothing)
    }

    @Test func connectionThatWaitsForItsClientMayMakeRoom() {
        var machine = Machine(discardedBytesMax: 100)
        #expect(machine.idleDeadline == .head)
        for event in Self.hit + [.settled] { Self.apply(event, to: &machine) }
        #expect(machine.idleDeadline == .idle)
        #expect(machine.waitForTurn() && !machine.waitForTurn())
        #expect(machine.idleDeadline == nil)
        machine.turnCame()
        for event in Self.exchange { Self.apply(event, to: &machine) }
        #expect(machine.idleDeadline == nil)
    }

    /// It has its response, and its content is read only to keep the connection.
    @Test func connectionThatDropsContentMayMakeRoom() {
        var machine = Machine(discardedBytesMax: 100)
        for event in Self.upload + [.answer] { Self.apply(event, to: &machine) }
        #expect(machine.idleDeadline == nil)
        for event in [Event.queued, .responseEnded] { Self.apply(event, to: &machine) }
        #expect(machine.idleDeadline == nil)
        Self.apply(.sent(hasMore: false), to: &machine)
        #expect(machine.idleDeadline == .content)
        Self.apply(.contentCame, to: &machine)
        #expect(machine.idleDeadline == .content)
    }

    /// What a worker does, with a client that does anything: the invariants hold after every event,
    /// and nothing that only the client can end is waited for without a limit.
    @Test(arguments: 0..<128 as Range<UInt64>)
    func clientIsNeverWaitedForWithoutALimit(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var machine = Machine(discardedBytesMax: 100)
        var hasBegun = false
        for _ in 0..<400 where !machine.isClosed {
            Self.step(&machine, &hasBegun, &random)
            machine.checkInvariants()
            guard !machine.isClosed else { continue }
            switch machine.settled(endsIdle: Int.random(in: 0..<50, using: &random) == 0) {
            case .close: #expect(machine.close(endsBody: false) == .close)
            case .linger, .wait:
                let waitsForClient =
                    machine.hasQueuedOutput || !machine.hasOpenRequest
                    || machine.content == .flowing && machine.course == .open
                #expect(machine.deadline != nil || !waitsForClient)
            }
            machine.checkInvariants()
        }
    }

    private static func step(
        _ machine: inout Machine,
        _ hasBegun: inout Bool,
        _ random: inout SeededRandom
    ) {
        let mayRead = machine.usesInput(hasRoom: true) && !machine.isLingering
        switch Int.random(in: 0..<14, using: &random) {
        case 0: apply(.readable, to: &machine)
        case 1: apply(.ending, to: &machine)
        case 2 where machine.isReadable && mayRead: apply(.read, to: &machine)
        case 3 where machine.input == .readableToEnd && mayRead:
            if machine.inputEnded() == .close { _ = machine.close(endsBody: false) }
        case 4 where mayRead && machine.content == .none:
            apply(.inputHeld, to: &machine)
        case 5, 6:
            guard mayRead, machine.content == .none else { return }
            machine.heldInputUsed()
            for event in [Event.request, .pending] { apply(event, to: &machine) }
            hasBegun = false
            if Bool.random(using: &random) {
                apply(.content(isAwaited: Bool.random(using: &random)), to: &machine)
            }
        case 7 where machine.hasOpenRequest && !hasBegun:
            apply(
                .answer(
                    mayPersist: Int.random(in: 0..<8, using: &random) > 0,
                    isUnasked: false,
                    isDraining: false
                ),
                to: &machine
            )
            hasBegun = true
        case 8 where machine.hasOpenRequest && hasBegun: apply(.responseEnded, to: &machine)
        case 9 where machine.content == .flowing: apply(.contentCame, to: &machine)
        case 10 where machine.content == .flowing: apply(.contentEnded, to: &machine)
        case 11 where machine.content == .flowing && machine.hasOpenRequest:
            apply(.contentFilled, to: &machine)
            apply(.contentWanted, to: &machine)
        case 12 where !machine.isLingering: apply(.queued, to: &machine)
        case 13 where machine.hasQueuedOutput:
            apply(.sent(hasMore: Bool.random(using: &random)), to: &machine)
        default: break
        }
    }
}
