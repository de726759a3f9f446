import CacheEngine
import CacheProxy
import CacheTestSupport
import Foundation
import Synchronization
import Testing

/// Exchanges of each client with origins that break off, send wrong framing or send too much.
@Suite struct CurlOriginHostileTests {
    private func failure(
        of origin: any ConnectingOrigin,
        _ request: OriginRequest
    ) async -> CacheError.Code? {
        do {
            _ = try await origin.fetch(request).body.collect()
            return nil
        } catch {
            return (error as? CacheError)?.code
        }
    }

    /// The error of a response after which the origin closes the connection.
    private func failure(of origin: any ConnectingOrigin, answer text: String) async throws
        -> CacheError.Code?
    {
        let server = try LoopbackServer { _, connection in
            connection.send(text)
            connection.close()
        }
        return await failure(of: origin, OriginRequest(url: server.baseURL))
    }

    @Test(
        arguments: OriginKind.allCases,
        [
            // Incomplete responses.
            ("", CacheError.Code.originFailed),
            ("HTTP/1.1 200 OK\r\n", .originFailed),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", .bodyTruncated),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", .bodyTruncated),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .bodyTruncated),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", .bodyTruncated),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", .bodyTruncated),
            // Wrong framing.
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n",
                .originMisbehaved
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n",
                .originMisbehaved
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
                .originMisbehaved
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nabc", .originMisbehaved),
            ("HTTP/1.1 200 OK\r\nContent-Length: three\r\n\r\nabc", .originMisbehaved),
            // Other protocols.
            ("just some text without any head\r\n\r\n", .originMisbehaved),
            ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", .originMisbehaved),
            ("HTTP/1.1 20 OK\r\n\r\n", .originMisbehaved),
        ]
    )
    func brokenAnswerIsATypedError(kind: OriginKind, row: (text: String, code: CacheError.Code))
        async throws
    {
        #expect(try await failure(of: kind.make(), answer: row.text) == row.code)
    }

    @Test(arguments: OriginKind.allCases)
    func bytesBeyondTheLengthAreNotDelivered(kind: OriginKind) async throws {
        let server = try LoopbackServer { _, connection in
            connection.send(
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n\r\nX"
            )
        }
        let origin = kind.make()
        for _ in 0..<2 {
            let response = try await origin.fetch(OriginRequest(url: server.baseURL))
            #expect(try await response.body.collect().text == "abc")
        }
    }

    /// The coding of such a body is unknown, and its end is a guess (RFC 9112 §6.1, §6.3).
    @Test(
        arguments: OriginKind.allCases,
        [
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: foo",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: \"chunked\"",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked;a=b",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n , gzip",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding:",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: \u{b}chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\u{1}",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked",
            "HTTP/1.1 200 OK\r\nContent-Length : 3", "HTTP/1.1 200 OK\r\nContent-Length:\r\n 3",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\u{1}",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n 4",
        ]
    )
    func doubtfulFramingIsRefused(kind: OriginKind, head: String) async throws {
        let isChunked = head.contains("chunked")
        let server = try LoopbackServer { _, connection in
            connection.send(head + "\r\n\r\n" + (isChunked ? "3\r\nabc\r\n0\r\n\r\n" : "abc"))
        }
        let origin = kind.make()
        for number in 1...2 {
            let code = await failure(of: origin, OriginRequest(url: server.baseURL))
            #expect(code == .originMisbehaved)
            #expect(server.connectionCount == number)
        }
    }

    @Test(arguments: OriginKind.allCases, ["chunked", "Chunked", "  CHUNKED\t "])
    func chunkedInAnyCaseIsUnderstood(kind: OriginKind, coding: String) async throws {
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: \(coding)\r\n\r\n")
            connection.send("3;ext=1\r\nabc\r\n0\r\nX-Trailer: y\r\n\r\n")
        }
        let origin = kind.make()
        for _ in 0..<2 {
            let response = try await origin.fetch(OriginRequest(url: server.baseURL))
            #expect(try await response.body.collect().text == "abc")
        }
        #expect(server.connectionCount == 1)
    }

    /// An attack on the framing often has both fields, so the connection is not trusted afterwards.
    @Test(arguments: OriginKind.allCases)
    func connectionOfAnAnswerWithLengthAndCodingIsNotUsedAgain(kind: OriginKind) async throws {
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n")
            connection.send("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        }
        let origin = kind.make()
        for number in 1...2 {
            let response = try await origin.fetch(OriginRequest(url: server.baseURL))
            #expect(try await response.body.collect().text == "abc")
            #expect(server.connectionCount == number)
        }
    }

    @Test(arguments: OriginKind.allCases)
    func tenThousandFieldsAreRefused(kind: OriginKind) async throws {
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\n")
            for number in 0..<10_000 where !connection.send("X-\(number): y\r\n") { return }
            connection.send("\r\n")
        }
        #expect(
            await failure(of: kind.make(), OriginRequest(url: server.baseURL)) == .originMisbehaved
        )
    }

    @Test(arguments: OriginKind.allCases)
    func endlessFieldIsRefused(kind: OriginKind) async throws {
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nX: ")
            let part = String(repeating: "x", count: 1 << 14)
            for _ in 0..<10_000 where !connection.send(part) { return }
        }
        let code = await failure(of: kind.make(), OriginRequest(url: server.baseURL))
        #expect(code == .originMisbehaved || code == .originFailed)
    }

    @Test(arguments: OriginKind.allCases)
    func stormOfInformationalHeadsIsRefused(kind: OriginKind) async throws {
        let server = try LoopbackServer { _, connection in
            for _ in 0..<10_000 where !connection.send("HTTP/1.1 103 Early\r\n\r\n") { return }
            connection.respond()
        }
        #expect(
            await failure(of: kind.make(), OriginRequest(url: server.baseURL)) == .originMisbehaved
        )
    }

    @Test(arguments: OriginKind.allCases)
    func dribblingAnswerArrivesWhole(kind: OriginKind) async throws {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 26\r\nX: y\r\n\r\nabcdefghijklmnopqrstuvwxyz"
        let server = try LoopbackServer { _, connection in
            for byte in text.utf8 { connection.send([byte]) }
        }
        let response = try await kind.make().fetch(OriginRequest(url: server.baseURL))
        #expect(response.fields["X"] == "y")
        #expect(try await response.body.collect().text == "abcdefghijklmnopqrstuvwxyz")
    }

    @Test(arguments: OriginKind.allCases)
    func resetInTheBodyIsATruncation(kind: OriginKind) async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
            gate.wait()
            connection.reset()
        }
        let response = try await kind.make().fetch(OriginRequest(url: server.baseURL))
        gate.open()
        await #expect { try await response.body.collect() } throws: {
            ($0 as? CacheError)?.code == .bodyTruncated
        }
    }

    /// A complete body may be delivered; a truncated one must not pass as complete.
    @Test(
        arguments: OriginKind.allCases,
        [
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ]
    )
    func resetAtEachByteIsAnError(kind: OriginKind, text: String) async throws {
        let bytes = [UInt8](text.utf8)
        let server = try LoopbackServer { request, connection in
            connection.send([UInt8](bytes.prefix(Int(request.target.dropFirst()) ?? 0)))
            connection.reset()
        }
        let origin = kind.make()
        for count in 0...bytes.count {
            let request = OriginRequest(url: server.baseURL + "/\(count)")
            do {
                let body = try await origin.fetch(request).body.collect().text
                #expect(body == "abc" && count == bytes.count, "\(count)")
            } catch {
                let code = (error as? CacheError)?.code
                #expect(code == .originFailed || code == .bodyTruncated, "\(count) \(error)")
            }
        }
    }

    /// Single bytes do not extend the time limit of the head.
    @Test(arguments: OriginKind.allCases)
    func dribblingHeadTimesOut(kind: OriginKind) async throws {
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\n")
            for number in 0..<400 where connection.send("X-\(number): y\r\n") { poll(nil, 0, 10) }
        }
        let request = OriginRequest(url: server.baseURL, timeout: .seconds(0.2))
        #expect(await failure(of: kind.make(), request) == .originTimedOut)
    }

    @Test(arguments: OriginKind.allCases)
    func refusedConnectionIsAFailure(kind: OriginKind) async throws {
        let server = try LoopbackServer { _, connection in connection.respond() }
        let url = server.baseURL
        server.stop()
        #expect(await failure(of: kind.make(), OriginRequest(url: url)) == .originUnreachable)
    }

    @Test(arguments: OriginKind.allCases) func unknownHostIsAFailure(kind: OriginKind) async {
        #expect(
            await failure(of: kind.make(), OriginRequest(url: "http://nowhere.invalid/"))
                == .originUnreachable
        )
    }

    @Test(arguments: OriginKind.allCases)
    func deadConnectionIsReplacedForAnIdempotentRequest(kind: OriginKind) async throws {
        // The first request of each connection is answered; the next one finds it closing.
        let server = try LoopbackServer { request, connection in
            if request.target == "/warm" {
                connection.respond(body: "warm")
            } else if connection.number == 1 {
                connection.close()
            } else {
                connection.respond(body: "again")
            }
        }
        let origin = kind.make()
        let warm = OriginRequest(url: server.baseURL + "/warm")
        _ = try await origin.fetch(warm).body.collect()
        let response = try await origin.fetch(OriginRequest(url: server.baseURL + "/x"))
        #expect(try await response.body.collect().text == "again")
        #expect(server.requests.map(\.target) == ["/warm", "/x", "/x"])
    }

    /// Content that is read once cannot be sent again, so its request does not use a connection that
    /// may be dead.
    @Test(arguments: OriginKind.allCases, ["PUT", "DELETE", "GET"])
    func streamedContentIsNotLostToADeadConnection(kind: OriginKind, method: String) async throws {
        let server = try LoopbackServer { request, connection in
            if connection.number == 1, request.target != "/warm" { return connection.close() }
            connection.respond(bytes: request.body)
        }
        let origin = kind.make()
        let warm = OriginRequest(url: server.baseURL + "/warm")
        _ = try await origin.fetch(warm).body.collect()
        let (chunks, more) = AsyncStream<ByteChunk>.makeStream()
        more.yield(ByteChunk("content"))
        more.finish()
        let streamed = OriginRequest(
            method: HTTPMethod(method),
            url: server.baseURL + "/x",
            body: BodyStream(chunks, count: 7)
        )
        #expect(try await origin.fetch(streamed).body.collect().text == "content")
        #expect(server.requests.map(\.target) == ["/warm", "/x"])
        // Content in memory can be sent again, and uses a kept connection.
        let whole = OriginRequest(
            method: HTTPMethod(method),
            url: server.baseURL + "/warm",
            body: BodyStream(ByteChunk("whole"))
        )
        #expect(try await origin.fetch(whole).body.collect().text == "whole")
        #expect(server.connectionCount == 2)
    }

    /// One retry over a new connection, however many idle connections there are.
    @Test(arguments: OriginKind.allCases)
    func requestThatKillsKeptConnectionsIsSentTwiceAtMost(kind: OriginKind) async throws {
        let gate = LoopbackGate()
        let counter = RequestCounter()
        let server = try LoopbackServer { request, connection in
            guard request.target == "/warm" else { return connection.close() }
            if counter.next() == 8 { gate.open() }
            gate.wait()
            connection.respond(body: "warm")
        }
        let origin = kind.make()
        let warm = OriginRequest(url: server.baseURL + "/warm")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { _ = try await origin.fetch(warm).body.collect() }
            }
            try await group.waitForAll()
        }
        #expect(server.connectionCount == 8)
        let killer = OriginRequest(url: server.baseURL + "/kill")
        #expect(await failure(of: origin, killer) == .originFailed)
        #expect(server.requests.count { $0.target == "/kill" } == 2)
        #expect(server.connectionCount == 9)
        _ = try await origin.fetch(warm).body.collect()
        #expect(server.connectionCount == 9)
    }

    /// An origin that is merely not reached would let the request go to another one.
    @Test(arguments: OriginKind.allCases)
    func requestThatEndsItsServerFailsAsOneThatWasSent(kind: OriginKind) async throws {
        let held = Mutex<LoopbackServer?>(nil)
        let server = try LoopbackServer { request, connection in
            guard request.target != "/warm" else { return connection.respond(body: "warm") }
            held.withLock { $0?.stop() }
            connection.close()
        }
        held.withLock { $0 = server }
        defer { held.withLock { $0 = nil } }
        let origin = kind.make()
        _ = try await origin.fetch(OriginRequest(url: server.baseURL + "/warm")).body.collect()
        let killer = OriginRequest(url: server.baseURL + "/kill")
        #expect(await failure(of: origin, killer) == .originFailed)
        #expect(server.requests.count { $0.target == "/kill" } == 1)
        #expect(await failure(of: origin, killer) == .originUnreachable)
    }

    @Test(arguments: OriginKind.allCases, [nil, "content"])
    func requestThatIsNotIdempotentIsNeverSentTwice(kind: OriginKind, content: String?) async throws
    {
        let server = try LoopbackServer { request, connection in
            if request.target == "/warm" {
                connection.respond(body: "w")
            } else {
                connection.close()
            }
        }
        let origin = kind.make()
        for _ in 0..<3 {
            let warm = OriginRequest(url: server.baseURL + "/warm")
            _ = try await origin.fetch(warm).body.collect()
            let post = OriginRequest(
                method: .post,
                url: server.baseURL + "/post",
                body: content.map { BodyStream(ByteChunk($0)) }
            )
            #expect(await failure(of: origin, post) == .originFailed)
        }
        #expect(server.requests.count { $0.method == "POST" } == 3)
    }
}
