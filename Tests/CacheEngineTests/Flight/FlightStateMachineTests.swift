import CacheTestSupport
import Testing

@testable import CacheEngine

/// The state machine of a flight: a table of its transitions, and random walks beside a simple
/// model.
@Suite struct FlightStateMachineTests {
    static func machine(
        isWanted: Bool = true,
        waitersMax: Int = 10,
        attemptsMax: Int = 3
    ) -> FlightStateMachine<Void> {
        FlightStateMachine<Void>(
            isWanted: isWanted,
            waitersMax: waitersMax,
            attemptsMax: attemptsMax
        )
    }

    @Test func waitersAreToldInTheOrderTheyCame() {
        var machine = Self.machine()
        #expect(machine.join(as: .asker) == .wait(1))
        #expect(machine.join() == .wait(2))
        #expect(machine.join() == .wait(3))
        #expect(machine.leave(2) == .resume)
        #expect(machine.answered(for: .everyone).tickets == [1, 3])
        #expect(machine.join() == .readAnswer)
        #expect(machine.close().tickets == [])
        #expect(machine.join() == .lookAgain)
    }

    @Test(arguments: FlightAudience.allCases)
    func onlyAnAnswerForEveryoneCanBeJoined(audience: FlightAudience) {
        var machine = Self.machine()
        _ = machine.join(as: .asker)
        _ = machine.answered(for: audience)
        #expect(machine.join() == (audience == .everyone ? .readAnswer : .lookAgain))
        #expect(machine.isOver == (audience != .everyone))
    }

    @Test func failureElectsTheFirstWaiterWhileAttemptsAreLeft() {
        var machine = Self.machine(attemptsMax: 2)
        _ = machine.join(as: .asker)
        for _ in 0..<3 { _ = machine.join() }
        #expect(machine.dismissAsker()?.waiter == 1)
        #expect(machine.failed(electing: machine.waiters.first).elected == 2)
        #expect(machine.asker == 2 && machine.attempts == 2)
        #expect(machine.dismissAsker()?.waiter == 2)
        #expect(machine.failed(electing: machine.waiters.first).toldTickets == [3, 4])
        #expect(machine.isOver)
    }

    @Test func failureWithoutWaitersEndsTheFlight() {
        var machine = Self.machine()
        _ = machine.join(as: .asker)
        #expect(machine.dismissAsker()?.waiter == 1)
        #expect(machine.failed(electing: machine.waiters.first).toldTickets == [])
        #expect(machine.isOver)
    }

    @Test func anUnwantedFlightEndsWithItsLastWaiter() {
        var machine = Self.machine(isWanted: false)
        _ = machine.join(as: .asker)
        _ = machine.join()
        #expect(machine.leave(1) == .resume)
        #expect(machine.leave(2) == .resumeAndEndFetch)
        #expect(machine.isOver && machine.join() == .lookAgain)
    }

    @Test func aWantedFlightOutlivesItsWaiters() {
        var machine = Self.machine()
        _ = machine.join(as: .asker)
        #expect(machine.leave(1) == .resume)
        #expect(machine.leave(1) == .nothing)
        #expect(machine.isUnanswered && machine.join() == .wait(2))
    }

    @Test func aFullFlightRefusesAndAFreedPlaceIsTaken() {
        var machine = Self.machine(waitersMax: 2)
        _ = machine.join(as: .asker)
        _ = machine.join()
        #expect(machine.join() == .refuse)
        _ = machine.leave(2)
        #expect(machine.join() == .wait(3))
    }

    /// A random walk: each waiter that joined is released exactly once, in order.
    @Test(arguments: 0..<128 as Range<UInt64>)
    func everyWaiterIsToldExactlyOnce(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var machine = Self.machine(
            isWanted: Bool.random(using: &random),
            waitersMax: Int.random(in: 1...20, using: &random),
            attemptsMax: Int.random(in: 1...4, using: &random)
        )
        var model: [Int] = []
        var asker: Int?
        if case .wait(let waiter) = machine.join(as: .asker) {
            model.append(waiter)
            asker = waiter
        }
        for _ in 0..<200 where !machine.isOver {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                switch machine.join() {
                case .wait(let waiter):
                    #expect(model.last.map { $0 < waiter } ?? true)
                    model.append(waiter)
                    #expect(model.count <= machine.waitersMax)
                case .refuse: #expect(model.count == machine.waitersMax)
                case .readAnswer: #expect(!machine.isUnanswered)
                case .lookAgain: Issue.record("A flight that is not over can be joined")
                }
            case 5..<8:
                guard let waiter = model.randomElement(using: &random) else { continue }
                #expect(machine.leave(waiter) != .nothing)
                #expect(machine.leave(waiter) == .nothing)
                model.removeAll { $0 == waiter }
                if asker == waiter { asker = nil }
            case 8 where machine.isUnanswered:
                #expect(machine.dismissAsker()?.waiter == asker)
                model.removeAll { $0 == asker }
                asker = nil
                switch machine.failed(electing: machine.waiters.first) {
                case .elect(let next):
                    #expect(next == model.first)
                    asker = next
                case .giveUp(let told):
                    #expect(told.tickets == model)
                    model = []
                }
            case 9 where machine.isUnanswered && Bool.random(using: &random):
                #expect(machine.answered(for: .everyone).tickets == model)
                model = []
            default: break
            }
            #expect(machine.waiters == model)
            #expect(machine.waiters.count == model.count)
            machine.checkInvariants()
        }
        #expect(machine.close().tickets == model)
    }
}

extension FlightStateMachine<Void> {
    fileprivate var waiters: [WaiterID] { line.tickets }

    fileprivate mutating func join(as role: FlightRole = .follower) -> JoinAction {
        join((), as: role)
    }
}

extension FlightStateMachine.FailAction {
    fileprivate var elected: Int? {
        if case .elect(let waiter) = self { return waiter }
        return nil
    }

    fileprivate var toldTickets: [Int]? {
        if case .giveUp(let waiters) = self { return waiters.tickets }
        return nil
    }
}

extension WaitingLine {
    fileprivate var tickets: [Ticket] { everyone.map(\.ticket) }
}
