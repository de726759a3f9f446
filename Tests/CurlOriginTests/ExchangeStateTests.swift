import CacheEngine
import CacheTestSupport
import Testing

@testable import CurlOrigin

@Suite struct ExchangeStateTests {
    /// Compared with a plain list: no event is lost, doubled or reordered, and the queue stays
    /// bounded.
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
