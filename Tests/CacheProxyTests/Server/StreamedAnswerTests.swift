import CacheEngine
import CacheTestSupport
import Foundation
import Synchronization
import Testing

@testable import CacheProxy

/// Responses with streamed bodies: their framing and their end.
@Suite struct StreamedAnswerTests {
    @Test func streamedAnswerIsChunkedOrLengthDelimited() async throws {
        let responder = ScriptedResponder { request in
            let body = FedBody()
            for _ in 0..<50 { body.give("0123456789") }
            body.end()
            let count = request.url.hasSuffix("known") ? 500 : nil
            return CacheResponse(status: 200, body: BodyStream(body, count: count))
        }
        try await withServer(responder) { server in
            let client = try WireClient(server.port)
            let unknown = try await client.exchange("GET /u HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(unknown["Transfer-Encoding"] == "chunked" && unknown.body.count == 500)
            let known = try await client.exchange("GET /known HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(known["Content-Length"] == "500" && known.body.count == 500)
            let old = try await client.exchange("GET /u HTTP/1.0\r\n\r\n")
            #expect(old["Transfer-Encoding"] == nil && old.body.count == 500)
            #expect(old["Connection"] == "close")
        }
    }

    @Test func brokenBodyIsNotEndedCleanly() async throws {
        let responder = ScriptedResponder { request in
            let body = FedBody()
            body.give("partial")
            body.fail()
            let count = request.url.hasSuffix("known") ? 500 : nil
            return CacheResponse(status: 200, body: BodyStream(body, count: count))
        }
        try await withServer(responder) { server in
            for path in ["/u", "/known"] {
                let client = try WireClient(server.port)
                let response = try await client.exchange("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(!response.isComplete)
            }
            // If the body ends with the connection, the failure must end it with a reset.
            let client = try WireClient(server.port)
            await #expect(throws: WireFailure.self) {
                _ = try await client.exchange("GET /u HTTP/1.0\r\n\r\n")
            }
        }
    }

    @Test func responseBeforeABrokenBodyArrivesWhole() async throws {
        let whole = String(repeating: "whole ", count: 33_000)
        let responder = ScriptedResponder { request in
            if request.url.hasSuffix("whole") {
                return CacheResponse(status: 200, body: BodyStream(ByteChunk(whole)))
            }
            let body = FedBody()
            body.give("partial")
            body.fail()
            return CacheResponse(status: 200, body: BodyStream(body, count: 500))
        }
        try await withServer(responder) { server in
            let client = try WireClient(server.port)
            let requests = ["/whole", "/broken"].map { "GET \($0) HTTP/1.1\r\nHost: x\r\n\r\n" }
            try await client.send(requests.joined())
            // At this time the server still holds much of the first response.
            #expect(await eventually { server.counters[0][.aborted] == 1 })
            let first = try await client.response()
            #expect(first.isComplete && first.text == whole)
            let second = try await client.response()
            #expect(!second.isComplete && second.text == "partial")
        }
    }

    @Test func aBodyThatTheServerCutsShortEndsWithAReset() async throws {
        let responder = ScriptedResponder { _ in
            let body = FedBody()
            body.give("partial")
            return CacheResponse(status: 200, body: BodyStream(body))
        }
        try await withServer(responder) { server in
            let client = try WireClient(server.port)
            try await client.send("GET /u HTTP/1.0\r\n\r\n")
            #expect(await eventually { server.counters[0][.successful] == 1 })
            await server.stop()
            await #expect(throws: WireFailure.self) { _ = try await client.response() }
        }
    }

    @Test func bodyLongerThanItsLengthIsCut() async throws {
        let responder = ScriptedResponder { _ in
            let body = FedBody()
            body.give("0123456789ABCDEF")
            body.end()
            return CacheResponse(status: 200, body: BodyStream(body, count: 10))
        }
        try await withServer(responder) { server in
            let client = try WireClient(server.port)
            #expect(try await client.exchange(ServerTests.get).text == "0123456789")
            #expect(try await client.exchange(ServerTests.get).text == "0123456789")
        }
    }

    /// Over a socket in the file system, because the kernel holds megabytes for one of TCP.
    @Test func piecesOfOneByteTakeMoreOfTheWindow() async throws {
        let body = FedBody()
        let piece = ByteChunk("x")
        for _ in 0..<100_000 { body.give(piece) }
        body.end()
        let responder = ScriptedResponder { _ in
            CacheResponse(status: 200, body: BodyStream(body))
        }
        let path = NSTemporaryDirectory() + "cache-proxy-\(UUID().uuidString.prefix(8))"
        try await withServer(responder, configure: { $0.address = .unix(path: path) }) { _ in
            let socket = try #require(WireSocket.connected(toPath: path))
            try await onThread { try socket.write(ServerTests.get) }
            #expect(await eventually { body.delivered.load(ordering: .relaxed) > 1_000 })
            var (last, delivered) = (0, 1)
            while last != delivered {
                last = delivered
                await pause(milliseconds: 500)
                delivered = body.delivered.load(ordering: .relaxed)
            }
            // 256 KiB are 4,000 pieces; half as many wait in the queue, and the kernel holds some.
            #expect(delivered < 12_000)
            let whole = try await onThread { try socket.read(through: "x\r\n0\r\n\r\n") }
            #expect(whole != nil)
            #expect(body.delivered.load(ordering: .relaxed) == 100_000)
        }
    }
}
