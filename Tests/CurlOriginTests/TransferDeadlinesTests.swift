import CacheTestSupport
import Testing

@testable import CurlOrigin

@Suite struct TransferDeadlinesTests {
    private let second: UInt64 = 1_000_000_000

    @Test func headIsAwaitedUntilItsDeadline() {
        let limits = CurlConfiguration.Deadlines(
            connect: .seconds(2),
            head: .seconds(5),
            idle: .seconds(2),
            total: .seconds(20)
        )
        var deadlines = TransferDeadlines(.init(limits), head: nil, now: 0)
        #expect(deadlines.next == 7 * second)
        #expect(deadlines.expired(at: 7 * second) == .unsent)
        deadlines.sent(hasContent: false, now: second)
        #expect(deadlines.next == 6 * second)
        #expect(deadlines.expired(at: 6 * second - 1) == nil)
        #expect(deadlines.expired(at: 6 * second) == .head)
        // A retry over a new connection does not extend the limit.
        deadlines.sent(hasContent: false, now: 3 * second)
        #expect(deadlines.next == 6 * second)
    }

    @Test func shorterOfTheTwoLimitsOfAHeadCounts() {
        let limits = CurlConfiguration.Deadlines(head: .seconds(5))
        for (own, by) in [(Duration.seconds(1), second), (.seconds(9), 5 * second)] {
            var deadlines = TransferDeadlines(.init(limits), head: own, now: 0)
            deadlines.sent(hasContent: false, now: 0)
            #expect(deadlines.expired(at: by) == .head)
            #expect(deadlines.expired(at: by - 1) == nil)
        }
    }

    @Test func headIsAwaitedFromTheEndOfTheContent() {
        let limits = CurlConfiguration.Deadlines(head: .seconds(5), idle: .seconds(2))
        var deadlines = TransferDeadlines(.init(limits), head: nil, now: 0)
        deadlines.sent(hasContent: true, now: 0)
        for moment in 1...10 {
            deadlines.contentTaken(now: UInt64(moment) * second)
            #expect(deadlines.next == UInt64(moment + 2) * second)
        }
        #expect(deadlines.expired(at: 12 * second) == .upload)
        deadlines.contentEnded(now: 11 * second)
        #expect(deadlines.expired(at: 16 * second - 1) == nil)
        #expect(deadlines.expired(at: 16 * second) == .head)
        // The content is sent a second time.
        deadlines.sent(hasContent: true, now: 12 * second)
        #expect(deadlines.expired(at: 14 * second) == .upload)
    }

    /// A system holds megabytes, and tells only much later that an origin reads them.
    @Test func originThatTakesWhatTheSystemHoldsIsNotLate() {
        let limits = CurlConfiguration.Deadlines(head: .seconds(5), idle: .seconds(2))
        var deadlines = TransferDeadlines(.init(limits), head: nil, now: 0)
        let unsent = deadlines.next
        deadlines.originTookContent(now: second)
        #expect(deadlines.next == unsent)
        deadlines.sent(hasContent: true, now: 0)
        for moment in 1...9 as ClosedRange<UInt64> {
            deadlines.originTookContent(now: moment * second)
            #expect(deadlines.expired(at: (moment + 2) * second - 1) == nil)
            #expect(deadlines.expired(at: (moment + 2) * second) == .upload)
        }
        deadlines.contentEnded(now: 9 * second)
        for moment in 10...19 as ClosedRange<UInt64> {
            deadlines.originTookContent(now: moment * second)
            #expect(deadlines.expired(at: (moment + 5) * second - 1) == nil)
            #expect(deadlines.expired(at: (moment + 5) * second) == .head)
        }
        deadlines.headArrived(now: 20 * second)
        deadlines.originTookContent(now: 21 * second)
        #expect(deadlines.expired(at: 22 * second) == .idle)
    }

    /// A response may come before the end of the content; both then continue.
    @Test func contentTakenBehindTheHeadIsProgress() {
        let limits = CurlConfiguration.Deadlines(head: .seconds(5), idle: .seconds(2))
        var deadlines = TransferDeadlines(.init(limits), head: nil, now: 0)
        deadlines.sent(hasContent: true, now: 0)
        deadlines.headArrived(now: second)
        deadlines.contentTaken(now: 2 * second)
        deadlines.contentEnded(now: 2 * second)
        #expect(deadlines.expired(at: 4 * second - 1) == nil)
        #expect(deadlines.expired(at: 4 * second) == .idle)
    }

    @Test func silenceCountsOnlyWhileTheReaderWaits() {
        let limits = CurlConfiguration.Deadlines(
            head: .seconds(5),
            idle: .seconds(2),
            total: .seconds(20)
        )
        var deadlines = TransferDeadlines(.init(limits), head: nil, now: 0)
        deadlines.headArrived(now: 4 * second)
        #expect(deadlines.expired(at: 5 * second) == nil)
        #expect(deadlines.expired(at: 6 * second) == .idle)
        deadlines.progressed(now: 5 * second)
        #expect(deadlines.next == 7 * second)
        deadlines.readerHolds()
        #expect(deadlines.expired(at: 19 * second) == nil)
        deadlines.readerResumed(now: 10 * second)
        #expect(deadlines.expired(at: 11 * second) == nil)
        #expect(deadlines.expired(at: 12 * second) == .idle)
        #expect(deadlines.expired(at: 20 * second) == .total)
    }

    @Test func noLimitsMeanNoEnd() {
        let limits = CurlConfiguration.Deadlines(head: nil, idle: nil)
        var deadlines = TransferDeadlines(.init(limits), head: nil, now: 0)
        #expect(deadlines.next == .max)
        deadlines.sent(hasContent: true, now: 1)
        #expect(deadlines.next == .max)
        deadlines.headArrived(now: 1)
        #expect(deadlines.expired(at: .max - 1) == nil)
    }

    @Test(arguments: [.seconds(-1), .zero, Duration.seconds(Int64.max), .nanoseconds(1)])
    func oddLimitsDoNotTrap(limit: Duration) {
        let limits = CurlConfiguration.Deadlines(head: limit, total: limit)
        let deadlines = TransferDeadlines(.init(limits), head: nil, now: second)
        _ = deadlines.expired(at: second)
    }

    /// Each pause of an upload ends the looks at its socket, and the next content begins them.
    @Test func pausesOfAnUploadLeaveNothingInTheQueue() {
        let book = DeadlineBook()
        let id = TransferID(number: 1)
        var queued = QueuedMoments()
        var looks = 0
        for round in 0..<500 as Range<UInt64> {
            let start = round * second
            let deadline = start + 60 * second
            book.note(id, deadline: deadline, look: start + second / 4, in: &queued)
            #expect(book.next <= start + second / 4)
            for due in book.takeDue(now: start + second / 2) where queued.remove(due.moment) {
                looks += 1
                book.note(id, deadline: deadline, look: .max, in: &queued)
            }
            #expect(book.count == 1)
            #expect(book.next <= deadline)
        }
        #expect(looks >= 500)
        let isStillQueued = queued.remove(1)
        #expect(!isStillQueued)
    }

    @Test func lookAndDeadlineAtOneMomentAreOne() {
        let book = DeadlineBook()
        let id = TransferID(number: 1)
        var queued = QueuedMoments()
        book.note(id, deadline: second, look: second, in: &queued)
        // Moments that have moved back leave the elements where they are; earlier ones do not.
        book.note(id, deadline: 2 * second, look: 2 * second, in: &queued)
        #expect(book.count == 2)
        let due = book.takeDue(now: second)
        #expect(due.map { queued.remove($0.moment) } == [true, false])
        book.note(id, deadline: 9 * second, look: .max, in: &queued)
        book.note(id, deadline: 5 * second, look: .max, in: &queued)
        #expect(book.next == 5 * second)
    }

    @Test(arguments: 0..<64)
    func queueGivesMomentsInOrder(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var queue = DeadlineQueue()
        var model: [UInt64] = []
        for step in 0..<300 {
            if Int.random(in: 0..<3, using: &random) > 0 {
                let moment = UInt64.random(in: 0..<100, using: &random)
                queue.insert(.init(moment: moment, transfer: TransferID(number: UInt64(step))))
                model.append(moment)
                model.sort()
            } else {
                #expect(queue.first?.moment == model.first)
                queue.removeFirst()
                model = Array(model.dropFirst())
            }
        }
    }
}
