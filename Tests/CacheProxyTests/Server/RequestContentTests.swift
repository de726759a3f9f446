import CacheTestSupport
import Platform
import Testing

@testable import CacheEngine
@testable import CacheProxy

/// The content of a request between its client and its reader.
@Suite(.timeLimit(.minutes(5))) struct RequestContentTests {
    /// The reader is slower than the client, so that the window is never empty.
    @Test func pieceThatWasReadIsReleasedWhileOthersWait() async throws {
        let content = RequestContent {}
        func push() { _ = content.push(ByteChunk([UInt8](repeating: 1, count: 8 << 10))) }
        for _ in 0..<4 { push() }
        for _ in 0..<1_000 {
            push()
            weak var storage: ByteStorage?
            storage = try await content.next()?.storage
            #expect(storage == nil)
        }
    }

    @Test func steadySenderOfDroppedContentIsNotCut() async throws {
        let witness = StallWitness()
        let watching = Task { await witness.watch() }
        defer { watching.cancel() }
        let responder = ScriptedResponder { _ in .text("no", status: 413) }
        try await withServer(responder, configure: { $0.timeouts.content = .seconds(1) }) {
            server in
            var later: WireResponse?
            var (attempts, before) = (0, 0)
            var stalled: UInt64
            // A sender that the machine stops for half a limit is not steady.
            repeat {
                before = server.counters[0][.timeouts]
                let start = monotonicNanoseconds()
                later = try? await Self.responseAfterDroppedContent(of: server)
                await pause(milliseconds: 20)
                let time = start..<monotonicNanoseconds()
                stalled = UInt64(time.count) - witness.busyNanoseconds(time)
                attempts += 1
            } while stalled > 500_000_000 && attempts < 5
            #expect(later?.status == 413, "\(stalled) ns stalled")
            #expect(server.counters[0][.timeouts] == before)
        }
    }

    /// Sends content for two seconds after its response, and then another request.
    private static func responseAfterDroppedContent(
        of server: ProxyServer
    ) async throws -> WireResponse {
        let client = try WireClient(server.port)
        let early = try await client.exchange(
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n"
        )
        #expect(early.status == 413 && early["Connection"] == nil)
        for _ in 0..<20 {
            await pause(milliseconds: 100)
            try await client.send("x")
        }
        return try await client.exchange(ServerTests.get)
    }

    /// The response began before the end of the content, and depends on it.
    @Test func readerLearnsThatTheClientStandsStill() async throws {
        let responder = ScriptedResponder { request in
            let content = request.body
            let body = FedBody()
            body.give("begun")
            Task {
                do {
                    if let content { for try await _ in content {} }
                    body.end()
                } catch {
                    body.fail()
                }
            }
            return CacheResponse(status: 200, body: BodyStream(body))
        }
        try await withServer(responder, configure: { $0.timeouts.content = .milliseconds(300) }) {
            server in
            let client = try WireClient(server.port)
            try await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")
            let response = try await client.response()
            #expect(response.text == "begun" && !response.isComplete)
            #expect(try await client.isClosed())
            #expect(server.counters[0][.timeouts] == 1 && server.counters[0][.aborted] == 1)
        }
    }
}
