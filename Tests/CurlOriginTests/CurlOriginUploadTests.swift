import CacheEngine
import CacheProxy
import CacheTestSupport
import CurlOrigin
import Foundation
import Synchronization
import Testing

/// Requests with content, sent by each origin client.
@Suite(.timeLimit(.minutes(1))) struct CurlOriginUploadTests {
    /// A source of numbered bytes that counts the bytes taken and may fail in the middle.
    private final class NumberedSource: BodySource {
        private struct State {
            var taken = 0
            var isCancelled = false
        }

        private static let partCount = 10_000
        private let count: Int
        private let failsAt: Int?
        private let state = Mutex(State())

        init(count: Int, failsAt: Int? = nil) {
            self.count = count
            self.failsAt = failsAt
        }

        var taken: Int { state.withLock { $0.taken } }
        var isCancelled: Bool { state.withLock { $0.isCancelled } }

        func next() async throws -> ByteChunk? {
            let from = taken
            if let failsAt, from >= failsAt { throw CacheError(.storageFailed, detail: "test") }
            guard from < count else { return nil }
            let part = min(Self.partCount, count - from)
            state.withLock { $0.taken += part }
            return ByteChunk(count: part) { buffer in
                for index in 0..<part {
                    buffer[index] = UInt8(truncatingIfNeeded: (from + index) &* 7 >> 2)
                }
            }
        }

        func cancel() { state.withLock { $0.isCancelled = true } }

        static func bytes(_ range: Range<Int>) -> [UInt8] {
            range.map { UInt8(truncatingIfNeeded: $0 &* 7 >> 2) }
        }
    }

    private func echoServer() throws -> LoopbackServer {
        try LoopbackServer { request, connection in connection.respond(bytes: request.body) }
    }

    @Test(arguments: OriginKind.allCases, ["POST", "PUT", "PATCH", "QUERY", "GET", "DELETE"])
    func contentInMemoryIsSentWithItsLength(kind: OriginKind, method: String) async throws {
        let server = try echoServer()
        let request = OriginRequest(
            method: HTTPMethod(method),
            url: server.baseURL,
            body: BodyStream(ByteChunk("content"))
        )
        let response = try await kind.make().fetch(request)
        #expect(try await response.body.collect().text == "content")
        #expect(server.requests.first?.method == method)
        #expect(server.requests.first?["Content-Length"] == "7")
    }

    @Test(arguments: OriginKind.allCases, ["", "content"]) func contentOfAHeadIsLeftOut(
        kind: OriginKind,
        content: String
    ) async throws {
        let server = try echoServer()
        let request = OriginRequest(
            method: .head,
            url: server.baseURL,
            body: BodyStream(ByteChunk(content))
        )
        #expect(try await kind.make().fetch(request).status == 200)
        #expect(server.requests.first?.method == "HEAD")
        #expect(server.requests.first?["Content-Length"] == nil)
    }

    @Test(arguments: OriginKind.allCases)
    func contentIsNotTouchedBeforeThereIsAConnection(kind: OriginKind) async throws {
        let server = try echoServer()
        let url = server.baseURL
        server.stop()
        let source = NumberedSource(count: 1_000_000)
        let request = OriginRequest(method: .put, url: url, body: BodyStream(source))
        await #expect(throws: CacheError.self) { _ = try await kind.make().fetch(request) }
        #expect(source.taken == 0)
    }

    /// Content that stops in the middle, and an origin that responds without waiting for it.
    @Test(arguments: OriginKind.allCases, [413, 200]) func answerBeforeTheEndOfTheContentEnds(
        kind: OriginKind,
        status: Int
    ) async throws {
        let (chunks, more) = AsyncStream<ByteChunk>.makeStream()
        more.yield(ByteChunk("a first part"))
        let server = try LoopbackServer(
            beforeContent: { _, connection in
                connection.respond(status, body: "over")
                connection.waitForClose()
            },
            { _, _ in }
        )
        let request = OriginRequest(
            method: .put,
            url: server.baseURL,
            body: BodyStream(StreamSource(chunks), count: 100)
        )
        let response = try await kind.make().fetch(request)
        #expect(response.status == status)
        if status == 413 { #expect(try await response.body.collect().text == "over") }
        more.finish()
    }

    /// A body source that yields the chunks of a stream.
    private final class StreamSource: BodySource {
        private let chunks: Mutex<AsyncStream<ByteChunk>.Iterator>
        init(_ stream: AsyncStream<ByteChunk>) { chunks = Mutex(stream.makeAsyncIterator()) }
        func next() async throws -> ByteChunk? {
            var iterator = chunks.withLock { $0 }
            return await iterator.next()
        }
        func cancel() {}
    }

    @Test(arguments: OriginKind.allCases, [0, 1, 9_999, 300_000, 3_000_000])
    func streamOfUnknownLengthIsSentInChunks(kind: OriginKind, count: Int) async throws {
        let server = try echoServer()
        let source = NumberedSource(count: count)
        let request = OriginRequest(method: .post, url: server.baseURL, body: BodyStream(source))
        let response = try await kind.make().fetch(request)
        #expect(try await response.body.collect().array == NumberedSource.bytes(0..<count))
        #expect(server.requests.first?["Transfer-Encoding"] == "chunked")
        #expect(server.requests.first?["Expect"] == nil)
    }

    @Test(arguments: OriginKind.allCases, [1, 300_000, 3_000_000])
    func streamOfKnownLengthIsSentWithIt(kind: OriginKind, count: Int) async throws {
        let server = try echoServer()
        for known in [true, false] {
            let body = BodyStream(NumberedSource(count: count), count: known ? count : nil)
            let fields: HeaderFields = known ? [:] : ["Content-Length": "\(count)"]
            let request = OriginRequest(
                method: .put,
                url: server.baseURL,
                fields: fields,
                body: body
            )
            let response = try await kind.make().fetch(request)
            #expect(try await response.body.collect().array == NumberedSource.bytes(0..<count))
            #expect(server.requests.last?["Content-Length"] == "\(count)")
            #expect(server.requests.last?["Transfer-Encoding"] == nil)
        }
    }

    @Test(arguments: OriginKind.allCases, [99, 101])
    func streamOfTheWrongLengthIsRefused(kind: OriginKind, announced: Int) async throws {
        let server = try echoServer()
        let body = BodyStream(NumberedSource(count: 100), count: announced)
        let request = OriginRequest(method: .put, url: server.baseURL, body: body)
        await #expect { _ = try await kind.make().fetch(request) } throws: {
            ($0 as? CacheError)?.code == .requestInvalid
        }
        #expect(server.requestCount == 0)
    }

    @Test(
        arguments: OriginKind.allCases,
        [
            ["5, 6"], ["5, 5"], ["5", "5"], ["+5"], ["-5"], ["x"], [""],
            ["9223372036854775808"],
        ]
    )
    func announcedLengthIsOneNumber(kind: OriginKind, announced: [String]) async throws {
        let server = try echoServer()
        var request = OriginRequest(
            method: .put,
            url: server.baseURL,
            body: BodyStream(NumberedSource(count: 5))
        )
        for line in announced { request.fields.append("Content-Length", line) }
        await #expect { _ = try await kind.make().fetch(request) } throws: {
            ($0 as? CacheError)?.code == .requestInvalid
        }
        #expect(server.requestCount == 0)
    }

    @Test(arguments: OriginKind.allCases)
    func failingStreamFailsTheFetchWithItsError(kind: OriginKind) async throws {
        let server = try echoServer()
        let body = BodyStream(NumberedSource(count: 1_000_000, failsAt: 500_000))
        let request = OriginRequest(method: .put, url: server.baseURL, body: body)
        await #expect { _ = try await kind.make().fetch(request) } throws: {
            ($0 as? CacheError)?.code == .storageFailed
        }
        #expect(server.requestCount == 0)
    }

    /// Content that counts its movements since its last piece was read.
    private final class WatchedPieces: WatchedSource {
        private struct State {
            var left: Int
            var movementCount = 0
        }

        static let pieceBytes = 1_000
        private let state: Mutex<State>

        init(count: Int) { state = Mutex(State(left: count)) }

        var movementCount: Int { state.withLock { $0.movementCount } }

        func next() async throws -> ByteChunk? {
            let isOver = state.withLock { state in
                if state.left == 0 { return true }
                state.left -= 1
                state.movementCount = 0
                return false
            }
            return isOver ? nil : ByteChunk([UInt8](repeating: 1, count: Self.pieceBytes))
        }

        func noteMovement() { state.withLock { $0.movementCount += 1 } }

        func cancel() {}
    }

    /// Content is read ahead, so the engine learns only in this way that it is on its way.
    @Test(arguments: OriginKind.allCases)
    func contentThatIsSentCountsAsMovement(kind: OriginKind) async throws {
        let server = try echoServer()
        let source = WatchedPieces(count: 200)
        let body = BodyStream(source, count: 200 * WatchedPieces.pieceBytes)
        let request = OriginRequest(method: .put, url: server.baseURL, body: body)
        let response = try await kind.make().fetch(request)
        #expect(try await response.body.collect().count == body.count)
        #expect(source.movementCount > 0)
    }

    @Test(arguments: OriginKind.allCases)
    func originThatDoesNotReadHoldsTheStream(kind: OriginKind) async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer(
            beforeContent: { request, _ in if request.method == "PUT" { gate.wait() } },
            { request, connection in connection.respond(body: "\(request.body.count)") }
        )
        let origin = kind.make()
        let count = 64 << 20
        let source = NumberedSource(count: count)
        let request = OriginRequest(
            method: .put,
            url: server.baseURL + "/x",
            body: BodyStream(source, count: count)
        )
        async let answer = origin.fetch(request).body.collect().text
        let other = kind.make()
        for _ in 0..<300 {
            let request = OriginRequest(url: server.baseURL + "/other")
            _ = try await other.fetch(request).body.collect()
        }
        #expect(source.taken < 24 << 20)
        gate.open()
        #expect(try await answer == "\(count)")
        #expect(server.connectionCount == 2)
    }

    // MARK: - Deadlines

    /// Content of `count` pieces at regular intervals; it has no end if `isEndless`.
    private func dribble(
        _ count: Int,
        everyMilliseconds: Int32,
        isEndless: Bool = false
    ) -> BodyStream {
        let (chunks, more) = AsyncStream<ByteChunk>.makeStream()
        Thread {
            for _ in 0..<count {
                more.yield(ByteChunk("0123456789"))
                poll(nil, 0, everyMilliseconds)
            }
            if !isEndless { more.finish() }
        }.start()
        return BodyStream(StreamSource(chunks))
    }

    /// The pieces arrive in time, but the whole upload takes longer than the limit.
    @Test(arguments: OriginKind.allCases)
    func uploadMayTakeLongerThanTheHead(kind: OriginKind) async throws {
        let server = try LoopbackServer { request, connection in
            connection.respond(body: "\(request.body.count)")
        }
        let body = dribble(25, everyMilliseconds: 100)
        let request = OriginRequest(
            method: .put,
            url: server.baseURL,
            body: body,
            timeout: .seconds(2)
        )
        #expect(try await kind.make().fetch(request).body.collect().text == "250")
    }

    @Test(arguments: OriginKind.allCases)
    func headIsAwaitedFromTheEndOfTheContent(kind: OriginKind) async throws {
        let server = try LoopbackServer { _, connection in connection.waitForClose() }
        let deadlines = CurlConfiguration.Deadlines(head: .seconds(0.3), idle: .seconds(30))
        let origin = kind.make(.init(deadlines: deadlines))
        let clock = ContinuousClock()
        let start = clock.now
        let body = dribble(10, everyMilliseconds: 50)
        let request = OriginRequest(method: .put, url: server.baseURL, body: body)
        await #expect { _ = try await origin.fetch(request) } throws: {
            ($0 as? CacheError)?.code == .originTimedOut
        }
        #expect(clock.now - start > .seconds(0.6))
    }

    @Test(arguments: OriginKind.allCases)
    func originThatStopsTakingContentTimesOut(kind: OriginKind) async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer(beforeContent: { _, _ in gate.wait() }, { _, _ in })
        defer { gate.open() }
        let deadlines = CurlConfiguration.Deadlines(head: nil, idle: .seconds(1))
        let origin = kind.make(.init(deadlines: deadlines))
        let body = BodyStream(NumberedSource(count: 200 << 20), count: 200 << 20)
        let request = OriginRequest(method: .put, url: server.baseURL, body: body)
        await #expect { _ = try await origin.fetch(request) } throws: {
            ($0 as? CacheError)?.code == .originTimedOut
        }
    }

    /// A client that stops sending must not count as a fault of the origin.
    @Test(arguments: OriginKind.allCases)
    func contentThatStopsArrivingIsNotTheOriginsFault(kind: OriginKind) async throws {
        let server = try echoServer()
        let deadlines = CurlConfiguration.Deadlines(head: nil, idle: .seconds(0.3))
        let origin = kind.make(.init(deadlines: deadlines))
        let body = dribble(3, everyMilliseconds: 10, isEndless: true)
        let request = OriginRequest(method: .put, url: server.baseURL, body: body)
        await #expect { _ = try await origin.fetch(request) } throws: {
            ($0 as? CacheError)?.code == .deadlineExceeded
        }
    }

    @Test(arguments: OriginKind.allCases)
    func cancelledFetchCancelsTheStream(kind: OriginKind) async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer(beforeContent: { _, _ in gate.wait() }, { _, _ in })
        let origin = kind.make()
        let source = NumberedSource(count: 200 << 20)
        let url = server.baseURL
        let fetch = Task {
            let body = BodyStream(source)
            return try await origin.fetch(OriginRequest(method: .put, url: url, body: body))
        }
        while source.taken == 0 { await Task.yield() }
        fetch.cancel()
        await #expect(throws: CancellationError.self) { _ = try await fetch.value }
        #expect(await eventually { source.isCancelled })
        gate.open()
    }
}
