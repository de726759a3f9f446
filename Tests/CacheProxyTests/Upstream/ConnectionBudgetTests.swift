import CurlOrigin
import Testing

@testable import CacheProxy

/// The limits of connections over all event loops.
@Suite struct ConnectionBudgetTests {
    private let mailbox: Mailbox

    init() throws { mailbox = try Mailbox() }

    private static func limits(_ perHost: Int, _ total: Int) -> CurlConfiguration.Connections {
        .init(maximumPerHost: perHost, maximumTotal: total)
    }

    private static func budget(perHost: Int, total: Int) -> ConnectionBudget {
        ConnectionBudget(limits(perHost, total))
    }

    /// The exchanges that were granted a permit since the last call.
    private func granted() -> [TransferID] {
        var messages: [WorkerMessage] = []
        mailbox.take(into: &messages)
        return messages.compactMap { message in
            guard case .upstream(.granted(let id, _, _)) = message else { return nil }
            return id
        }
    }

    @Test func exchangesOverTheLimitOfAHostWaitInLine() {
        let budget = Self.budget(perHost: 2, total: 100)
        let a = budget.place(of: "a", 80)
        let b = budget.place(of: "b", 80)
        let ids = (0..<4).map { _ in TransferID.next() }
        #expect(budget.take(a, for: ids[0], at: mailbox))
        #expect(budget.take(a, for: ids[1], at: mailbox))
        #expect(!budget.take(a, for: ids[2], at: mailbox))
        #expect(!budget.take(a, for: ids[3], at: mailbox))
        #expect(budget.take(b, for: .next(), at: mailbox))
        budget.give(a)
        #expect(granted() == [ids[2]])
        budget.give(a)
        #expect(granted() == [ids[3]])
        budget.give(a)
        #expect(granted().isEmpty)
    }

    @Test func totalLimitHoldsOverAllHosts() {
        let budget = Self.budget(perHost: 2, total: 2)
        let a = budget.place(of: "a", 80)
        let b = budget.place(of: "a", 81)
        let waiter = TransferID.next()
        #expect(budget.take(a, for: .next(), at: mailbox))
        #expect(budget.take(a, for: .next(), at: mailbox))
        #expect(!budget.take(b, for: waiter, at: mailbox))
        budget.give(a)
        #expect(granted() == [waiter])
    }

    @Test func permitUnderTheTotalLimitGoesToTheLongestWaiterOfAnyHost() {
        let budget = Self.budget(perHost: 9, total: 1)
        let (a, b, c) = (
            budget.place(of: "a", 1), budget.place(of: "b", 1), budget.place(of: "c", 1)
        )
        let ids = (0..<6).map { _ in TransferID.next() }
        #expect(budget.take(a, for: .next(), at: mailbox))
        for (id, host) in zip(ids, [a, b, a, c, b, a]) {
            #expect(!budget.take(host, for: id, at: mailbox))
        }
        for (id, host) in zip(ids, [a, a, b, a, c, b]) {
            budget.give(host)
            #expect(granted() == [id])
        }
    }

    @Test func exchangeThatLeavesIsPassedOver() {
        let budget = Self.budget(perHost: 1, total: 9)
        let a = budget.place(of: "a", 80)
        let ids = (0..<5).map { _ in TransferID.next() }
        #expect(budget.take(a, for: .next(), at: mailbox))
        for id in ids { #expect(!budget.take(a, for: id, at: mailbox)) }
        // One that has left already, and one that was never in line, change nothing.
        for id in [ids[0], ids[2], ids[2], .next()] { budget.leave(a, id) }
        #expect(budget.waiterCount == 3)
        for id in [ids[1], ids[3], ids[4]] {
            budget.give(a)
            #expect(granted() == [id])
        }
        // The permit is on its way.
        budget.leave(a, ids[4])
        budget.give(a)
        #expect(granted().isEmpty && budget.waiterCount == 0 && budget.placeCount == 0)
        #expect(budget.take(a, for: .next(), at: mailbox))
    }

    /// Clients that ask, give up and ask again fill no memory while all connections are in use.
    @Test func placesOfThoseThatLeftAreRemoved() {
        let budget = Self.budget(perHost: 1, total: 9)
        let a = budget.place(of: "a", 80)
        let patient = (0..<10).map { _ in TransferID.next() }
        #expect(budget.take(a, for: .next(), at: mailbox))
        for id in patient { #expect(!budget.take(a, for: id, at: mailbox)) }
        for _ in 0..<100 {
            let impatient = (0..<1_000).map { _ in TransferID.next() }
            for id in impatient { #expect(!budget.take(a, for: id, at: mailbox)) }
            for id in impatient { budget.leave(a, id) }
            #expect(budget.waiterCount == 10 && budget.placeCount < 300)
        }
        for id in patient {
            budget.give(a)
            #expect(granted() == [id])
        }
    }

    @Test func permitOfAnEndedLoopGoesToTheNextInLine() throws {
        let budget = Self.budget(perHost: 1, total: 9)
        let ended = try Mailbox()
        let a = budget.place(of: "a", 80)
        #expect(budget.place(of: "a", 80) == a)
        let next = TransferID.next()
        #expect(budget.take(a, for: .next(), at: mailbox))
        #expect(!budget.take(a, for: .next(), at: ended))
        #expect(!budget.take(a, for: next, at: mailbox))
        ended.close([])
        budget.give(a)
        #expect(granted() == [next])
    }

    @Test(arguments: [(2, 9), (9, 2)])
    func higherLimitIsGrantedToThoseInLine(perHost: Int, total: Int) {
        let budget = Self.budget(perHost: perHost, total: total)
        let a = budget.place(of: "a", 80)
        let ids = (0..<6).map { _ in TransferID.next() }
        for id in ids { _ = budget.take(a, for: id, at: mailbox) }
        budget.setLimits(Self.limits(5, 5))
        #expect(granted() == Array(ids[2..<5]))
        #expect(budget.waiterCount == 1)
    }

    @Test(arguments: [(1, 9), (9, 1)])
    func lowerLimitHoldsOnceEnoughPermitsAreGiven(perHost: Int, total: Int) {
        let budget = Self.budget(perHost: 3, total: 3)
        let a = budget.place(of: "a", 80)
        let ids = (0..<5).map { _ in TransferID.next() }
        for id in ids { _ = budget.take(a, for: id, at: mailbox) }
        budget.setLimits(Self.limits(perHost, total))
        for wanted in [[], [], [ids[3]], [ids[4]], []] {
            budget.give(a)
            #expect(granted() == wanted)
        }
        #expect(budget.take(a, for: .next(), at: mailbox))
        #expect(!budget.take(a, for: .next(), at: mailbox))
    }
}
