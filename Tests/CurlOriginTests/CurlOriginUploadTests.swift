import CacheEngine
import CacheTestSupport
import CurlOrigin
import Synchronization
import Testing

/// Requests with content.
@Suite(.timeLimit(.minutes(1))) struct CurlOriginUploadTests {
    /// A source of numbered bytes that counts what was taken, and may fail in the middle.
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

    @Test(arguments: ["POST", "PUT", "PATCH", "QUERY", "GET", "DELETE"])
    func contentInMemoryIsSentWithItsLength(method: String) async throws {
        let server = try echoServer()
        let request = OriginRequest(
            method: Method(method),
            url: server.baseURL,
            body: BodyStream(ByteChunk("content"))
        )
        let response = try await CurlOrigin().fetch(request)
        #expect(try await response.body.collect().text == "content")
        #expect(server.requests.first?.method == method)
        #expect(server.requests.first?["Content-Length"] == "7")
    }

    @Test(arguments: [0, 1, 9_999, 300_000, 3_000_000])
    func streamOfUnknownLengthIsSentInChunks(count: Int) async throws {
        let server = try echoServer()
        let source = NumberedSource(count: count)
        let request = OriginRequest(method: .post, url: server.baseURL, body: BodyStream(source))
        let response = try await CurlOrigin().fetch(request)
        #expect(try await response.body.collect().array == NumberedSource.bytes(0..<count))
        #expect(server.requests.first?["Transfer-Encoding"] == "chunked")
        #expect(server.requests.first?["Expect"] == nil)
    }

    @Test(arguments: [1, 300_000, 3_000_000])
    func streamOfKnownLengthIsSentWithIt(count: Int) async throws {
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
            let response = try await CurlOrigin().fetch(request)
            #expect(try await response.body.collect().array == NumberedSource.bytes(0..<count))
            #expect(server.requests.last?["Content-Length"] == "\(count)")
            #expect(server.requests.last?["Transfer-Encoding"] == nil)
        }
    }

    @Test(arguments: [99, 101])
    func streamOfTheWrongLengthIsRefused(announced: Int) async throws {
        let server = try echoServer()
        let body = BodyStream(NumberedSource(count: 100), count: announced)
        let request = OriginRequest(method: .put, url: server.baseURL, body: body)
        await #expect { _ = try await CurlOrigin().fetch(request) } throws: {
            ($0 as? CacheError)?.code == .requestInvalid
        }
        #expect(server.requestCount == 0)
    }

    @Test func failingStreamFailsTheFetchWithItsError() async throws {
        let server = try echoServer()
        let body = BodyStream(NumberedSource(count: 1_000_000, failsAt: 500_000))
        let request = OriginRequest(method: .put, url: server.baseURL, body: body)
        await #expect { _ = try await CurlOrigin().fetch(request) } throws: {
            ($0 as? CacheError)?.code == .storageFailed
        }
        #expect(server.requestCount == 0)
    }

    @Test func originThatDoesNotReadHoldsTheStream() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer { request, connection in
            connection.respond(body: "\(request.body.count)")
            // The next request on this connection finds nobody reading.
            if request.target == "/warm" { gate.wait() }
        }
        let origin = CurlOrigin()
        let warm = OriginRequest(url: server.baseURL + "/warm")
        _ = try await origin.fetch(warm).body.collect()
        let count = 64 << 20
        let source = NumberedSource(count: count)
        let request = OriginRequest(
            method: .put,
            url: server.baseURL + "/x",
            body: BodyStream(source, count: count)
        )
        async let answer = origin.fetch(request).body.collect().text
        let other = CurlOrigin()
        for _ in 0..<300 {
            let request = OriginRequest(url: server.baseURL + "/other")
            _ = try await other.fetch(request).body.collect()
        }
        #expect(source.taken < 24 << 20)
        gate.open()
        #expect(try await answer == "\(count)")
        #expect(server.connectionCount == 2)
    }

    @Test func cancelledFetchCancelsTheStream() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer { _, connection in
            connection.respond(body: "warm")
            gate.wait()
        }
        let origin = CurlOrigin()
        _ = try await origin.fetch(OriginRequest(url: server.baseURL)).body.collect()
        let source = NumberedSource(count: 200 << 20)
        let url = server.baseURL
        let fetch = Task {
            let body = BodyStream(source)
            return try await origin.fetch(OriginRequest(method: .put, url: url, body: body))
        }
        while source.taken == 0 { await Task.yield() }
        fetch.cancel()
        await #expect(throws: CancellationError.self) { _ = try await fetch.value }
        for _ in 0..<1_000_000 where !source.isCancelled { await Task.yield() }
        #expect(source.isCancelled)
        gate.open()
    }
}
