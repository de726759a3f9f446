import CacheEngine
import CacheTestSupport
import CurlOrigin
import Testing

/// Exchanges with origins that break off, lie and overdo it.
@Suite struct CurlOriginHostileTests {
    private func failure(
        of origin: CurlOrigin = CurlOrigin(),
        _ request: OriginRequest
    ) async -> CacheError.Code? {
        do {
            _ = try await origin.fetch(request).body.collect()
            return nil
        } catch {
            return (error as? CacheError)?.code
        }
    }

    /// What becomes of an answer that the origin sends and then closes the connection.
    private func failure(ofAnswer text: String) async throws -> CacheError.Code? {
        let server = try LoopbackServer { _, connection in
            connection.send(text)
            connection.close()
        }
        return await failure(OriginRequest(url: server.baseURL))
    }

    @Test(arguments: [
        // Breaks off.
        ("", CacheError.Code.originFailed),
        ("HTTP/1.1 200 OK\r\n", .originFailed),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", .bodyTruncated),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", .bodyTruncated),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .bodyTruncated),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", .bodyTruncated),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", .bodyTruncated),
        // Lies about the framing.
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n", .originMisbehaved),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n",
            .originMisbehaved
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", .originMisbehaved),
        ("HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nabc", .originMisbehaved),
        ("HTTP/1.1 200 OK\r\nContent-Length: three\r\n\r\nabc", .originMisbehaved),
        // Speaks something else.
        ("just some text without any head\r\n\r\n", .originMisbehaved),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", .originMisbehaved),
        ("HTTP/1.1 20 OK\r\n\r\n", .originMisbehaved),
    ])
    func brokenAnswerIsATypedError(text: String, code: CacheError.Code) async throws {
        #expect(try await failure(ofAnswer: text) == code)
    }

    @Test func bytesBeyondTheLengthAreNotDelivered() async throws {
        let server = try LoopbackServer { _, connection in
            connection.send(
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n\r\nX"
            )
        }
        let origin = CurlOrigin()
        for _ in 0..<2 {
            let response = try await origin.fetch(OriginRequest(url: server.baseURL))
            #expect(try await response.body.collect().text == "abc")
        }
    }

    @Test(arguments: ["foo", "gzip", "identity", "chunked, foo"])
    func unknownTransferCodingIsReadToTheClose(coding: String) async throws {
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: \(coding)\r\n\r\n")
            connection.send(coding.hasPrefix("chunked") ? "3\r\nabc\r\n0\r\n\r\n" : "abc")
            connection.close()
        }
        let response = try await CurlOrigin().fetch(OriginRequest(url: server.baseURL))
        #expect(try await response.body.collect().text == "abc")
    }

    @Test func tenThousandFieldsAreRefused() async throws {
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\n")
            for number in 0..<10_000 where !connection.send("X-\(number): y\r\n") { return }
            connection.send("\r\n")
        }
        #expect(await failure(OriginRequest(url: server.baseURL)) == .originMisbehaved)
    }

    @Test func endlessFieldIsRefused() async throws {
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nX: ")
            let part = String(repeating: "x", count: 1 << 14)
            for _ in 0..<10_000 where !connection.send(part) { return }
        }
        let code = await failure(OriginRequest(url: server.baseURL))
        #expect(code == .originMisbehaved || code == .originFailed)
    }

    @Test func stormOfInformationalHeadsIsRefused() async throws {
        let server = try LoopbackServer { _, connection in
            for _ in 0..<10_000 where !connection.send("HTTP/1.1 103 Early\r\n\r\n") { return }
            connection.respond()
        }
        #expect(await failure(OriginRequest(url: server.baseURL)) == .originMisbehaved)
    }

    @Test func dribblingAnswerArrivesWhole() async throws {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 26\r\nX: y\r\n\r\nabcdefghijklmnopqrstuvwxyz"
        let server = try LoopbackServer { _, connection in
            for byte in text.utf8 { connection.send([byte]) }
        }
        let response = try await CurlOrigin().fetch(OriginRequest(url: server.baseURL))
        #expect(response.fields["X"] == "y")
        #expect(try await response.body.collect().text == "abcdefghijklmnopqrstuvwxyz")
    }

    @Test func resetInTheBodyIsATruncation() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
            gate.wait()
            connection.reset()
        }
        let response = try await CurlOrigin().fetch(OriginRequest(url: server.baseURL))
        gate.open()
        await #expect { try await response.body.collect() } throws: {
            ($0 as? CacheError)?.code == .bodyTruncated
        }
    }

    @Test func nobodyListeningIsAFailure() async throws {
        let server = try LoopbackServer { _, connection in connection.respond() }
        let url = server.baseURL
        server.stop()
        #expect(await failure(OriginRequest(url: url)) == .originFailed)
    }

    @Test func unknownHostIsAFailure() async {
        #expect(await failure(OriginRequest(url: "http://nowhere.invalid/")) == .originFailed)
    }

    @Test func deadConnectionIsReplacedForAnIdempotentRequest() async throws {
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
        let origin = CurlOrigin()
        let warm = OriginRequest(url: server.baseURL + "/warm")
        _ = try await origin.fetch(warm).body.collect()
        let response = try await origin.fetch(OriginRequest(url: server.baseURL + "/x"))
        #expect(try await response.body.collect().text == "again")
        #expect(server.requests.map(\.target) == ["/warm", "/x", "/x"])
    }

    @Test(arguments: [nil, "content"])
    func requestThatIsNotIdempotentIsNeverSentTwice(content: String?) async throws {
        let server = try LoopbackServer { request, connection in
            if request.target == "/warm" {
                connection.respond(body: "w")
            } else {
                connection.close()
            }
        }
        let origin = CurlOrigin()
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
