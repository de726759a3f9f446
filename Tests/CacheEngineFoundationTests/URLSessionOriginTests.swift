import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Testing

@Suite(.timeLimit(.minutes(1))) struct URLSessionOriginTests {
    let origin = URLSessionOrigin()

    private func failure(_ request: OriginRequest) async -> CacheError.Code? {
        do {
            _ = try await origin.fetch(request).body.collect()
            return nil
        } catch {
            return (error as? CacheError)?.code
        }
    }

    @Test func answerArrivesWithStatusFieldsAndBody() async throws {
        let server = try LoopbackServer { request, connection in
            connection.respond(203, [("ETag", "\"1\"")], body: request["X-A"] ?? "")
        }
        let request = OriginRequest(url: server.baseURL + "/x?y", fields: ["X-A": "b"])
        let response = try await origin.fetch(request)
        #expect(response.status == 203)
        #expect(response.fields["etag"] == "\"1\"")
        #expect(try await response.body.collect().text == "b")
        #expect(server.requests.first?.target == "/x?y")
    }

    @Test func redirectIsAnAnswer() async throws {
        let server = try LoopbackServer { _, connection in
            connection.respond(302, [("Location", "/elsewhere")], body: "moved")
        }
        let response = try await origin.fetch(OriginRequest(url: server.baseURL))
        #expect(response.status == 302)
        #expect(response.fields["Location"] == "/elsewhere")
        _ = try await response.body.collect()
        #expect(server.requestCount == 1)
    }

    @Test(arguments: [
        (301, [("Cache-Control", "max-age=60")], ""),
        (401, [("WWW-Authenticate", "Basic realm=\"here\"")], "body"),
    ])
    func responseThatURLSessionWithholdsArrives(
        status: Int,
        fields: [(String, String)],
        body: String
    ) async throws {
        let server = try LoopbackServer { _, connection in
            connection.respond(status, fields, body: "body")
        }
        let response = try await origin.fetch(OriginRequest(url: server.baseURL))
        #expect(response.status == status)
        #expect(response.fields[fields[0].0] == fields[0].1)
        #expect(try await response.body.collect().text == body)
        #expect(server.requestCount == 1)
    }

    @Test func contentBeyondTheMemoryGoesThroughAFile() async throws {
        let server = try LoopbackServer { request, connection in
            connection.respond(body: "\(request.body.count) \(request["Content-Type"] ?? "none")")
        }
        let piece = ByteChunk(Data(count: 300_000))
        let pieces = AsyncStream<ByteChunk> { stream in
            for _ in 0..<10 { stream.yield(piece) }
            stream.finish()
        }
        let request = OriginRequest(method: .post, url: server.baseURL, body: BodyStream(pieces))
        let response = try await origin.fetch(request)
        #expect(try await response.body.collect().text == "3000000 none")
    }

    /// The last content goes through a file.
    @Test(arguments: [(10, 5), (10, 20), (3_000_000, 2_000_000)])
    func contentOfTheWrongLengthIsNotSent(announced: Int, bytes: Int) async throws {
        let server = try LoopbackServer { _, connection in connection.respond() }
        let piece = ByteChunk(Data(count: bytes / 5))
        let pieces = AsyncStream<ByteChunk> { stream in
            for _ in 0..<5 { stream.yield(piece) }
            stream.finish()
        }
        let body = BodyStream(pieces, count: announced)
        let request = OriginRequest(method: .post, url: server.baseURL, body: body)
        #expect(await failure(request) == .requestInvalid)
        #expect(server.requestCount == 0)
    }

    /// A stream ends quietly when its reader is cancelled.
    @Test func contentOfACancelledTaskIsNotSent() async throws {
        let server = try LoopbackServer { _, connection in connection.respond() }
        let (pieces, sender) = AsyncStream<ByteChunk>.makeStream()
        sender.yield(ByteChunk("begun"))
        let body = pieces.map { piece -> ByteChunk in
            withUnsafeCurrentTask { $0?.cancel() }
            return piece
        }
        let url = server.baseURL
        let fetch = Task { [origin] in
            try await origin.fetch(OriginRequest(method: .post, url: url, body: BodyStream(body)))
        }
        await #expect(throws: CancellationError.self) { _ = try await fetch.value }
        #expect(server.requestCount == 0)
    }

    /// The origin may take what follows on the connection for requests of the same user.
    @Test(arguments: ["NTLM TlRMTVNTUAAB", "negotiate YII", "Kerberos YII", "Basic eDp5"])
    func connectionOfOneUserIsNotForAnother(credentials: String) async throws {
        let server = try LoopbackServer { request, connection in
            guard request["Connection"] == "close" else { return connection.respond(body: "x") }
            connection.respond(200, [("Connection", "close")], body: "x")
            connection.close()
        }
        let login = OriginRequest(url: server.baseURL, fields: ["Authorization": credentials])
        for number in 1...2 {
            for request in [login, OriginRequest(url: server.baseURL)] {
                #expect(try await origin.fetch(request).body.collect().text == "x")
            }
            let isOfOneUser = !credentials.hasPrefix("Basic")
            #expect(server.connectionCount == (isOfOneUser ? number + 1 : 1))
        }
    }

    @Test func configurationOfTheCallerIsNotChanged() {
        let configuration = URLSessionConfiguration.default
        let cache = URLCache(memoryCapacity: 1, diskCapacity: 0, diskPath: nil)
        configuration.urlCache = cache
        _ = URLSessionOrigin(configuration: configuration)
        #expect(configuration.urlCache === cache)
        #expect(configuration.httpCookieStorage != nil)
    }

    @Test(arguments: ["GET", "HEAD", "POST", "PUT", "DELETE"])
    func methodAndContentAreSent(method: String) async throws {
        let server = try LoopbackServer { request, connection in
            if request.method == "HEAD" {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
            } else {
                connection.respond(bytes: [UInt8](request.method.utf8) + request.body)
            }
        }
        let hasBody = ["POST", "PUT"].contains(method)
        let request = OriginRequest(
            method: HTTPMethod(method),
            url: server.baseURL,
            body: hasBody ? BodyStream(ByteChunk("-content")) : nil
        )
        let response = try await origin.fetch(request)
        let text = try await response.body.collect().text
        #expect(text == (method == "HEAD" ? "" : hasBody ? method + "-content" : method))
    }

    @Test func brokenAnswersAreErrors() async throws {
        let short = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            connection.close()
        }
        #expect(await failure(OriginRequest(url: short.baseURL)) == .bodyTruncated)
        let url = "http://127.0.0.1:\(ClosedPort.number)"
        #expect(await failure(OriginRequest(url: url)) == .originUnreachable)
        #expect(await failure(OriginRequest(url: "nonsense")) == .requestInvalid)
    }

    @Test func silentOriginTimesOut() async throws {
        let server = try LoopbackServer { _, connection in connection.waitForClose() }
        let request = OriginRequest(url: server.baseURL, timeout: .seconds(1))
        #expect(await failure(request) == .originTimedOut)
    }

    @Test func limitBelowASecondIsKept() async throws {
        let server = try LoopbackServer { _, connection in connection.waitForClose() }
        let request = OriginRequest(url: server.baseURL, timeout: .milliseconds(300))
        let start = ContinuousClock.now
        #expect(await failure(request) == .originTimedOut)
        #expect(ContinuousClock.now - start >= .milliseconds(300))
    }

    /// The time passes in an exchange that times out.
    @Test func limitIsThatOfTheHeadAlone() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer { request, connection in
            guard request.path == "/paused" else { return connection.waitForClose() }
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
            gate.wait()
            connection.send("cd")
        }
        let paused = OriginRequest(url: server.baseURL + "/paused", timeout: .seconds(1))
        let response = try await origin.fetch(paused)
        let silent = OriginRequest(url: server.baseURL + "/silent", timeout: .milliseconds(2_500))
        #expect(await failure(silent) == .originTimedOut)
        gate.open()
        #expect(try await response.body.collect().text == "abcd")
    }

    @Test func longestLimitIsNone() async throws {
        let server = try LoopbackServer { _, connection in connection.respond(body: "x") }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = .infinity
        let request = OriginRequest(url: server.baseURL, timeout: .seconds(Int64.max))
        for origin in [origin, URLSessionOrigin(configuration: configuration)] {
            #expect(try await origin.fetch(request).body.collect().text == "x")
        }
    }

    @Test func decodedPartIsNoPart() async throws {
        // The head of a gzip stream, and a block of five bytes that is not the last one.
        let part: [UInt8] = [31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 0, 5, 0, 250, 255] + "hello".utf8
        let server = try LoopbackServer { _, connection in
            let fields = [("Content-Encoding", "gzip"), ("Content-Range", "bytes 0-19/99")]
            connection.respond(206, fields, bytes: part)
        }
        var request = OriginRequest(url: server.baseURL, fields: ["Range": "bytes=0-19"])
        #expect(await failure(request) == .originMisbehaved)
        request.fields["Accept-Encoding"] = "gzip"
        #expect(await failure(request) == .originMisbehaved)
        #expect(server.requests.map { $0["Accept-Encoding"] } == ["identity", "gzip"])
    }

    @Test func codingOfTheTransferOverridesTheLength() async throws {
        let server = try LoopbackServer { _, connection in
            let head =
                "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nTransfer-Encoding: chunked\r\n\r\n"
            connection.send(head + "3\r\nabc\r\n0\r\n\r\n")
        }
        let response = try await origin.fetch(OriginRequest(url: server.baseURL))
        #expect(response.fields["Content-Length"] == nil)
        #expect(try await response.body.collect().text == "abc")
    }

    @Test func droppedBodyClosesTheConnection() async throws {
        let (events, continuation) = AsyncStream<Void>.makeStream()
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\n\r\nabc")
            connection.waitForClose()
            continuation.yield()
        }
        var response: OriginResponse? = try await origin.fetch(OriginRequest(url: server.baseURL))
        #expect(response?.status == 200)
        response = nil
        for await _ in events { break }
    }

    @Test func slowReaderIsBoundedByAnError() async throws {
        let (events, continuation) = AsyncStream<Void>.makeStream()
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\n\r\n")
            let part = [UInt8](repeating: 7, count: 1 << 16)
            // URLSession carries out no cancellation while data can be read.
            for _ in 0..<512 where !connection.send(part) { break }
            connection.waitForClose()
            continuation.yield()
        }
        let small = URLSessionOrigin(maximumWindow: .megabytes(4))
        let response = try await small.fetch(OriginRequest(url: server.baseURL))
        // The error arrives without a read: the server sees the cancelled task close.
        for await _ in events { break }
        await #expect {
            for try await _ in response.body {}
        } throws: {
            ($0 as? CacheError)?.code == .readerTooSlow
        }
    }

    @Test func piecesOfOneByteCountWhatTheyTake() async throws {
        let (events, continuation) = AsyncStream<Void>.makeStream()
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.send(String(repeating: "1\r\na\r\n", count: 4_000))
            connection.waitForClose()
            continuation.yield()
        }
        let small = URLSessionOrigin(maximumWindow: .kilobytes(64))
        let response = try await small.fetch(OriginRequest(url: server.baseURL))
        for await _ in events { break }
        await #expect {
            for try await _ in response.body {}
        } throws: {
            ($0 as? CacheError)?.code == .readerTooSlow
        }
    }
}
