import HTTPCaching
import Platform
import Testing

@testable import CacheEngine

/// The tables of running flights, tested alone.
@Suite struct FlightDeskTests {
    /// A request; the tables only pass it on.
    private static let request = FetchContext(
        RequestContext(
            CacheRequest(url: "https://example.com/"),
            RequestFacts(method: .get, fields: FieldSection()),
            .standard,
            ReuseTerms(.standard, CachingRules()),
            requestKey,
            isStorable: true,
            startedNanoseconds: 0,
            untilNanoseconds: .max,
            ancestors: []
        ),
        lookup: .nothing(requestKey),
        ticket: RemovalLedger().ticket()
    )
    private static let requestKey = RequestKey(bytes: [1], hash: key(1))

    /// A request that may lead, and joins whatever is under way.
    private struct Checks: BoardingChecks {
        let mayLead = true
        let newestHead: UInt64 = 0
        let isPersonal = false
        let hasCookie = false

        /// Called when the desk asks whether a tag was removed, after it has looked for an answer.
        var whenTagsWereRemoved: (@Sendable (Flight) -> Void)?

        func mayJoin(_ flight: Flight) -> Bool { true }
        func isOutdated(_ flight: Flight) -> Bool { false }
        func isBehindRemovedTags(_ flight: Flight) -> Bool {
            whenTagsWereRemoved?(flight)
            return whenTagsWereRemoved != nil
        }
        func refreshesRemovedTag(_ flight: Flight) -> Bool { false }
        func suits(_ answer: FlightAnswer, of flight: Flight) -> Bool { true }
        func hasNews() -> Bool { false }
    }

    private static func key(_ identity: UInt64) -> KeyHash {
        KeyHash(placement: 1, identity: identity)
    }

    @Test("a flight whose next attempt finds another variant holds that one's key, and no other")
    func aFlightHoldsOneVariant() {
        let desk = FlightDesk(limits: CollapsingOptions(), desks: 1)
        let boarding = desk.board(Self.key(1), Self.request, nowNanoseconds: 0, Checks())
        guard case .leading(let flight, _) = boarding else {
            Issue.record("Nothing was under way: it leads")
            return
        }
        for identity in [2, 3] as [UInt64] {
            desk.settleVariant(of: Self.key(1), flight.permit) { ((), Self.key(identity)) }
            #expect(desk.count == 2)
        }
        desk.withdraw(flight)
        flight.close()
        #expect(desk.count == 0)
    }

    /// The tags of an answer that comes between the desk's look and the joining are not compared.
    @Test func answerThatHasJustComeIsLookedAtAgain() {
        let desk = FlightDesk(limits: CollapsingOptions(), desks: 1)
        _ = desk.board(Self.key(1), Self.request, nowNanoseconds: 0, Checks())
        var checks = Checks()
        checks.whenTagsWereRemoved = { flight in
            let answer = FlightAnswer(status: 200, fields: FieldSection(), content: .own(.empty))
            #expect(flight.answer(answer, for: .everyone, order: 1, attempt: 1) == 1)
        }
        let boarding = desk.board(Self.key(1), Self.request, nowNanoseconds: 0, checks)
        guard case .aboard(let flight, .known(.lookAgain)) = boarding else {
            Issue.record("It must look again: \(boarding)")
            return
        }
        desk.withdraw(flight)
        flight.close()
    }

    /// The next asker gets its own response, whatever was removed before it boarded.
    @Test func nextAskerIsToldOfARemovedTag() {
        let desk = FlightDesk(limits: CollapsingOptions(), desks: 1)
        _ = desk.board(Self.key(1), Self.request, nowNanoseconds: 0, Checks())
        var checks = Checks()
        checks.whenTagsWereRemoved = { _ in }
        let boardings = (0..<2).map { _ in
            desk.board(Self.key(1), Self.request, nowNanoseconds: 0, checks)
        }
        guard case .aboard(let flight, .waiting) = boardings[0],
            case .elected = flight.fail(CacheError(.originFailed, detail: ""), attempt: 1)
        else {
            Issue.record("It waits, and asks next")
            return
        }
        let answer = FlightAnswer(status: 200, fields: FieldSection(), content: .own(.empty))
        let told = flight.answer(answer, for: .everyone, order: 1, attempt: 2) { true }
        #expect(told == 1)
        desk.withdraw(flight)
        flight.close()
    }

    @Test func flightUnderTwoKeysIsTakenOnce() {
        var table = FlightTable(limits: CollapsingOptions(), desks: 1)
        var flights: [Flight] = []
        for identity in [1, 2] as [UInt64] {
            let boarding = table.board(
                Self.key(identity),
                Self.request,
                nowNanoseconds: identity,
                Checks()
            )
            guard case .leading(let flight, _) = boarding else {
                Issue.record("Nothing was under way: it leads")
                return
            }
            flights.append(flight)
            table.enter(Self.key(identity + 10), of: Self.key(identity), flight.permit)
        }
        #expect(table.count == 4)
        let taken = table.takeAll()
        #expect(taken.count == 2 && zip(taken, flights).allSatisfy { $0 === $1 })
        #expect(table.count == 0)
        for flight in flights { flight.abort(CancellationError()) }
    }

    @Test func markOfALargeResponseLastsForItsTimeOrUntilAnotherResponse() {
        var table = FlightTable(limits: CollapsingOptions(), desks: 1)
        let time = CollapsingOptions().hitForMissTime.nanoseconds
        table.noteTooLarge(Self.key(1), nowNanoseconds: 1)
        var isMarked: [Bool] = []
        for now in [1, time, time + 1] {
            isMarked.append(table.isTooLarge(Self.key(1), nowNanoseconds: now))
        }
        #expect(isMarked == [true, true, false])
        table.noteTooLarge(Self.key(1), nowNanoseconds: 1)
        let boarding = table.board(Self.key(1), Self.request, nowNanoseconds: 1, Checks())
        guard case .leading(let flight, _) = boarding else {
            Issue.record("The mark keeps no request from leading")
            return
        }
        flight.abort(CancellationError())
        table.noteShareable(Self.key(1), isForAll: true)
        let isStillMarked = table.isTooLarge(Self.key(1), nowNanoseconds: 1)
        #expect(!isStillMarked)
    }

    @Test("a flight beyond the maximum age gives its key to a new one")
    func anOverdueFlightGivesUpItsKey() {
        var limits = CollapsingOptions()
        limits.maximumAge = .seconds(60)
        let desk = FlightDesk(limits: limits, desks: 1)
        let limit: UInt64 = 60_000_000_000
        let first = desk.board(Self.key(1), Self.request, nowNanoseconds: 0, Checks())
        let joined = desk.board(Self.key(1), Self.request, nowNanoseconds: limit - 1, Checks())
        let second = desk.board(Self.key(1), Self.request, nowNanoseconds: limit, Checks())
        guard case .leading(let old, _) = first, case .aboard(let same, _) = joined,
            case .leading(let new, _) = second
        else {
            Issue.record("The first and the last request lead, and the other one follows")
            return
        }
        #expect(old === same && old !== new)
        #expect(old.isOver && !old.permit.isValid && !new.isOver)
        #expect(desk.count == 1)
    }

    @Test("a flight keeps its key for as long as its requests have time, if no age is set")
    func aFlightWithoutAMaximumAgeKeepsItsKey() {
        let desk = FlightDesk(limits: CollapsingOptions(), desks: 1)
        let first = desk.board(Self.key(1), Self.request, nowNanoseconds: 0, Checks())
        let hour: UInt64 = 3_600_000_000_000
        let second = desk.board(Self.key(1), Self.request, nowNanoseconds: hour, Checks())
        guard case .leading(let old, _) = first, case .aboard(let same, _) = second else {
            Issue.record("The first request leads, and the second follows")
            return
        }
        #expect(old === same && old.permit.isValid)
    }

    /// The response for the asker alone ends the flight, whose task still delivers the body.
    @Test func taskOfAnAnsweredFlightIsNotCancelled() async {
        let desk = FlightDesk(limits: CollapsingOptions(), desks: 1)
        let boarding = desk.board(Self.key(1), Self.request, nowNanoseconds: 0, Checks())
        guard case .leading(let flight, _) = boarding else {
            Issue.record("Nothing was under way: it leads")
            return
        }
        let answer = FlightAnswer(status: 200, fields: FieldSection(), content: .own(.empty))
        #expect(flight.answer(answer, for: .asker, order: 1, attempt: 1) != nil)
        #expect(flight.isOver)
        let (endless, source) = AsyncStream<Void>.makeStream()
        defer { source.finish() }
        let delivering = Task<Void, Never> { for await _ in endless {} }
        flight.attach(.task(delivering))
        #expect(!delivering.isCancelled)
        flight.abort(CancellationError())
        #expect(delivering.isCancelled)
        let late = Task<Void, Never> { for await _ in endless {} }
        flight.attach(.task(late))
        #expect(late.isCancelled)
    }
}
