import CacheEngine
import CacheTestSupport
import Testing

@testable import CurlOrigin

@Suite struct ExchangeStateTests {
    /// Against a plain list: nothing is lost, doubled or reordered, and what waits stays bounded.
    @Test(arguments: 0..<64)
    func eventsArriveInOrderWithinTheWindow(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let window = 1000
        var state = ExchangeState(windowBytesMax: window)
        var sent: [UInt8] = []
        var received: [UInt8] = []
        var waiting = 0
        var isHeld = false
        for step in 0..<500 {
            if Bool.random(using: &random), !isHeld {
                switch state.admit() {
                case .accepted:
                    let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: step), count: 100)
                    state.append(.chunk(ByteChunk(bytes)))
                    sent += bytes
                    waiting += 1
                case .held:
                    isHeld = true
                    #expect(waiting * 164 >= window)
                case .refused: Issue.record("Refused while open")
                }
            } else if case .chunk(let chunk)? = state.take() {
                received += chunk.array
                waiting -= 1
            }
            if state.resume() {
                #expect(isHeld)
                #expect(waiting * 164 <= window / 2)
                isHeld = false
            }
            #expect(waiting * 164 <= window + 164)
        }
        state.finish(.end)
        while case .chunk(let chunk)? = state.take() { received += chunk.array }
        #expect(received == sent)
    }

    @Test func outcomeComesAfterWhatWaits() {
        var state = ExchangeState(windowBytesMax: 10)
        state.append(.chunk(ByteChunk("a")))
        state.finish(.failure(CacheError(.bodyTruncated, detail: "")))
        state.finish(.end)
        guard case .chunk? = state.take(), case .failure? = state.take(),
            case .failure? = state.take()
        else {
            Issue.record("Wrong order")
            return
        }
    }

    @Test func abandonedExchangeTakesAndGivesNothing() {
        var state = ExchangeState(windowBytesMax: 10)
        state.append(.chunk(ByteChunk("a")))
        state.abandon(CancellationError())
        #expect(state.admit() == .refused)
        state.append(.chunk(ByteChunk("b")))
        guard case .failure? = state.take() else {
            Issue.record("Something was left")
            return
        }
    }
}

@Suite struct UploadWindowTests {
    @Test(arguments: 0..<64)
    func contentIsSentWholeAndInOrder(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let content = (0..<Int.random(in: 0..<3000, using: &random)).map { UInt8($0 & 0xFF) }
        var window = UploadWindow(count: Bool.random(using: &random) ? content.count : nil)
        var given = 0
        var sent: [UInt8] = []
        var isEnded = false
        for _ in 0..<10_000 where !isEnded {
            if given < content.count, Bool.random(using: &random) {
                let end = min(content.count, given + Int.random(in: 0..<200, using: &random))
                window.append(ByteChunk([UInt8](content[given..<end])))
                given = end
                if given == content.count { window.end() }
                continue
            }
            if content.isEmpty, given == 0 { window.end() }
            var buffer = [UInt8](repeating: 0, count: Int.random(in: 1..<300, using: &random))
            switch buffer.withUnsafeMutableBytes({ window.fill($0) }) {
            case .bytes(let count): sent += buffer[..<count]
            case .end: isEnded = true
            case .held:
                let wasHeld = window.takeSenderHold()
                #expect(wasHeld)
            case .broken: Issue.record("Broken")
            }
            #expect(window.waitingBytes == given - sent.count)
        }
        #expect(isEnded)
        #expect(sent == content)
    }

    @Test(arguments: [0, 2, 4, 100])
    func contentOfTheWrongLengthIsNotFinished(count: Int) {
        var window = UploadWindow(count: count)
        window.append(ByteChunk("abc"))
        window.end()
        var buffer = [UInt8](repeating: 0, count: 10)
        let filling = buffer.withUnsafeMutableBytes { window.fill($0) }
        #expect(filling == .broken)
        #expect((window.failure as? CacheError)?.code == .requestInvalid)
    }
}

@Suite struct TransferDeadlinesTests {
    private let second: UInt64 = 1_000_000_000

    @Test func headIsAwaitedUntilItsDeadline() {
        let limits = CurlConfiguration.Deadlines(headSeconds: 5, idleSeconds: 2, totalSeconds: 20)
        let deadlines = TransferDeadlines(limits, headSeconds: nil, now: 0)
        #expect(deadlines.next == 5 * second)
        #expect(deadlines.expired(at: 5 * second - 1) == nil)
        #expect(deadlines.expired(at: 5 * second) == .head)
        let own = TransferDeadlines(limits, headSeconds: 1, now: 0)
        #expect(own.expired(at: second) == .head)
    }

    @Test func silenceCountsOnlyWhileTheReaderWaits() {
        let limits = CurlConfiguration.Deadlines(headSeconds: 5, idleSeconds: 2, totalSeconds: 20)
        var deadlines = TransferDeadlines(limits, headSeconds: nil, now: 0)
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
        let limits = CurlConfiguration.Deadlines(headSeconds: nil, idleSeconds: nil)
        var deadlines = TransferDeadlines(limits, headSeconds: nil, now: 0)
        #expect(deadlines.next == .max)
        deadlines.headArrived(now: 1)
        #expect(deadlines.expired(at: .max - 1) == nil)
    }

    @Test(arguments: [-1, 0, Double.nan, .infinity, 1e300])
    func oddLimitsDoNotTrap(seconds: Double) {
        let limits = CurlConfiguration.Deadlines(headSeconds: seconds, totalSeconds: seconds)
        let deadlines = TransferDeadlines(limits, headSeconds: nil, now: second)
        _ = deadlines.expired(at: second)
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
