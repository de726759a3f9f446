import CCurl
import CacheEngine
import CacheTestSupport
import Platform
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

    /// The end may come between the last bytes and the question whether they were the last.
    @Test(arguments: [true, false])
    func contentThatFailsBehindItsLastBytesIsNotFinished(endsShort: Bool) {
        var window = UploadWindow(count: 4)
        window.append(ByteChunk("abc"))
        var buffer = [UInt8](repeating: 0, count: 10)
        let filling = buffer.withUnsafeMutableBytes { window.fill($0) }
        #expect(filling == .bytes(3))
        if endsShort { window.end() } else { window.fail(CancellationError()) }
        #expect(!window.isDrained)
        let next = buffer.withUnsafeMutableBytes { window.fill($0) }
        #expect(next == .broken)
    }

    @Test func sourceThatFailsBehindTheAnnouncedBytesChangesNothing() {
        var window = UploadWindow(count: 3)
        window.append(ByteChunk("abc"))
        var buffer = [UInt8](repeating: 0, count: 10)
        let filling = buffer.withUnsafeMutableBytes { window.fill($0) }
        #expect(filling == .bytes(3))
        window.fail(CancellationError())
        #expect(window.isDrained)
    }
}

@Suite struct CurlFailureTests {
    @Test func onlyWhatWasNotSentIsUnreachable() {
        let code = { (progress: CurlFailure.Progress, code: CURLcode) in
            CurlFailure.error(code, text: "", progress, isConnectionSound: false).code
        }
        for failure in [
            CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_OPERATION_TIMEDOUT,
            CURLE_SSL_CONNECT_ERROR,
        ] {
            #expect(code(.unsent, failure) == .originUnreachable)
            #expect(code(.sent, failure) != .originUnreachable)
            #expect(code(.arriving, failure) != .originUnreachable)
        }
        #expect(code(.sent, CURLE_OPERATION_TIMEDOUT) == .originTimedOut)
        #expect(code(.unsent, CURLE_URL_MALFORMAT) == .requestInvalid)
        #expect(code(.sent, CURLE_GOT_NOTHING) == .originFailed)
        #expect(code(.arriving, CURLE_PARTIAL_FILE) == .bodyTruncated)
    }

    @Test func whatThisMachineLacksIsNotTheOriginsFault() {
        let failures = [CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST]
        for failure in failures {
            let lack = CurlFailure.lack(failure, .unsent, systemCode: 0) { EMFILE }
            #expect(lack?.shown.code == .originFailed)
            #expect(CurlFailure.lack(failure, .unsent, systemCode: 0) { 0 } == nil)
            #expect(CurlFailure.lack(failure, .sent, systemCode: 0) { EMFILE } == nil)
        }
        let ports = CurlFailure.lack(failures[0], .unsent, systemCode: EADDRNOTAVAIL) { 0 }
        #expect(ports?.description.hasPrefix("Cannot open a socket to the origin: ") == true)
        let refused = CurlFailure.lack(failures[0], .unsent, systemCode: ECONNREFUSED) { EMFILE }
        #expect(refused == nil)
        let certificate = CURLE_PEER_FAILED_VERIFICATION
        #expect(CurlFailure.lack(certificate, .unsent, systemCode: 0) { EMFILE } == nil)
    }

    @Test func textOfLibcurlIsEscaped() {
        let error = CurlFailure.error(
            CURLE_WEIRD_SERVER_REPLY,
            text: "Received \u{1B}[2J",
            .sent,
            isConnectionSound: true
        )
        #expect(error.detail == "libcurl: Received \\u{1b}[2J")
    }

    @Test(arguments: [
        (CurlFailure.Progress.arriving, true, CacheError.Code.originMisbehaved),
        (.arriving, false, .bodyTruncated), (.sent, true, .originFailed),
    ])
    func bytesAreAtFaultOnlyOnASoundConnection(
        _ row: (CurlFailure.Progress, Bool, CacheError.Code)
    ) {
        // libcurl's text is of no account, whichever version wrote it.
        for text in ["", "Illegal or missing hexadecimal sequence in chunked-encoding"] {
            let error = CurlFailure.error(
                CURLE_RECV_ERROR,
                text: text,
                row.0,
                isConnectionSound: row.1
            )
            #expect(error.code == row.2)
        }
    }
}

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
