import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Testing

/// The tasks of a session that loads through a cache: delegates, redirects, contents, endings.
@Suite(.timeLimit(.minutes(1))) struct ProtocolTaskTests {
    private typealias Event = RecordingDelegate.Event

    private func request(
        _ url: String,
        _ change: (inout URLRequest) -> Void = { _ in }
    ) throws -> URLRequest {
        var request = URLRequest(url: try #require(URL(string: url)))
        change(&request)
        return request
    }

    /// A server whose responses stay fresh, and tell the content that they got.
    private static func echo() throws -> LoopbackServer {
        try LoopbackServer { request, connection in
            let content = String(decoding: request.body, as: UTF8.self)
            let type = request["Content-Type"] ?? "none"
            connection.respond(
                200,
                [("Cache-Control", "max-age=60"), ("X-Type", type)],
                body: "\(request.method) \(request.path) \(content)"
            )
        }
    }

    // MARK: - Bodies

    @Test func bodyReachesTheDelegatePieceByPiece() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none")
            gate.wait()
            connection.send("two")
        }
        let delegate = RecordingDelegate()
        let session = try await URLSession.loading(storing: .byRules, delegate: delegate)
        session.dataTask(with: try request(server.baseURL)).resume()
        for await event in delegate.events where event == .data("one") { break }
        gate.open()
        let events = await delegate.eventsToTheEnd()
        #expect(events == [.response(200), .data("one"), .data("two"), .end(nil)])
    }

    /// The session's delegate does not tell whether the task has a completion handler.
    @Test func completionHandlerGetsTheWholeBodyBesideADelegate() async throws {
        let body = [UInt8](repeating: 65, count: 3 << 20)
        let server = try LoopbackServer { _, connection in connection.respond(bytes: body) }
        let delegate = RecordingDelegate()
        let session = try await URLSession.loading(delegate: delegate)
        let (data, _) = try await session.data(for: try request(server.baseURL))
        #expect([UInt8](data) == body)
        let (results, continuation) = AsyncStream<Data?>.makeStream()
        session.dataTask(with: try request(server.baseURL)) { data, _, _ in
            continuation.yield(data)
        }
        .resume()
        for await data in results {
            #expect(data.map { [UInt8]($0) } == body)
            break
        }
        #expect(!delegate.seen.contains { if case .data = $0 { true } else { false } })
    }

    @Test func delegateOfOneTaskGetsItsEvents() async throws {
        let server = try Self.echo()
        let own = RecordingDelegate()
        let session = try await URLSession.loading()
        let (data, _) = try await session.data(for: request(server.baseURL + "/a"), delegate: own)
        #expect(String(decoding: data, as: UTF8.self) == "GET /a ")
        for await event in own.events where event == .data("GET /a ") { break }
        #expect(own.seen.first == .response(200))
    }

    @Test func concurrentTasksOfAllKindsAreOneRequest() async throws {
        let gate = LoopbackGate()
        let (arrivals, continuation) = AsyncStream<Void>.makeStream()
        let server = try LoopbackServer { _, connection in
            continuation.yield()
            gate.wait()
            connection.respond(200, [("Cache-Control", "max-age=60")], body: "x")
        }
        let session = try await URLSession.loading()
        let asked = try request(server.baseURL)
        let texts = try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<20 {
                group.addTask {
                    if number % 2 == 0 {
                        return String(decoding: try await session.data(for: asked).0, as: UTF8.self)
                    }
                    let (file, _) = try await session.download(for: asked)
                    defer { try? FileManager.default.removeItem(at: file) }
                    return try String(contentsOf: file, encoding: .utf8)
                }
            }
            for await _ in arrivals { break }
            gate.open()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(texts == Array(repeating: "x", count: 20))
        #expect(server.requestCount == 1)
    }

    // MARK: - Downloads

    @Test func downloadReportsItsProgressAndIsStored() async throws {
        let server = try Self.echo()
        let delegate = RecordingDelegate()
        let session = try await URLSession.loading(delegate: delegate)
        for _ in 0..<2 {
            session.downloadTask(with: try request(server.baseURL + "/d")).resume()
            let events = await delegate.eventsToTheEnd().suffix(3)
            #expect(events == [.written(7, of: 7), .file("GET /d "), .end(nil)])
        }
        #expect(server.requestCount == 1)
    }

    @Test func brokenDownloadIsAnErrorAndLeavesNoFile() async throws {
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
            connection.close()
        }
        let session = try await URLSession.loading()
        let asked = try request(server.baseURL)
        await #expect(throws: URLError.self) { try await session.download(for: asked) }
    }

    // MARK: - Contents

    @Test func contentOfEveryKindIsSentOnce() async throws {
        let server = try Self.echo()
        let file = URL(fileURLWithPath: NSTemporaryDirectory() + "/upload-\(UUID().uuidString)")
        try Data("from a file".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let delegate = RecordingDelegate(stream: { InputStream(data: Data("asked for".utf8)) })
        let session = try await URLSession.loading(delegate: delegate)
        let post = try request(server.baseURL + "/u") { $0.httpMethod = "POST" }
        let (data, head) = try await session.upload(for: post, from: Data("from data".utf8))
        #expect(String(decoding: data, as: UTF8.self) == "POST /u from data")
        #expect((head as? HTTPURLResponse)?.value(forHTTPHeaderField: "X-Type") == "none")
        let sent = try await session.upload(for: post, fromFile: file).0
        #expect(String(decoding: sent, as: UTF8.self) == "POST /u from a file")
        var form = post
        form.httpBody = Data("a=b".utf8)
        let (answer, formHead) = try await session.data(for: form)
        #expect(String(decoding: answer, as: UTF8.self) == "POST /u a=b")
        #expect(
            (formHead as? HTTPURLResponse)?.value(forHTTPHeaderField: "X-Type")
                == "application/x-www-form-urlencoded"
        )
        var streamed = post
        streamed.httpBodyStream = InputStream(data: Data("from a stream".utf8))
        let read = try await session.data(for: streamed).0
        #expect(String(decoding: read, as: UTF8.self) == "POST /u from a stream")
        session.uploadTask(withStreamedRequest: post).resume()
        let events = await delegate.eventsToTheEnd()
        #expect(events.contains(.data("POST /u asked for")))
        #expect(events.contains(.sent(9, of: NSURLSessionTransferSizeUnknown)))
        #expect(server.requestCount == 5)
    }

    @Test func uploadOfManyMegabytesArrivesWhole() async throws {
        let server = try LoopbackServer { request, connection in
            connection.respond(body: "\(request.body.count)")
        }
        let session = try await URLSession.loading()
        let file = URL(fileURLWithPath: NSTemporaryDirectory() + "/upload-\(UUID().uuidString)")
        try Data(count: 5 << 20).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let put = try request(server.baseURL) { $0.httpMethod = "PUT" }
        let (data, _) = try await session.upload(for: put, fromFile: file)
        #expect(String(decoding: data, as: UTF8.self) == "\(5 << 20)")
    }

    @Test func missingFileIsAnError() async throws {
        let server = try Self.echo()
        let session = try await URLSession.loading()
        let put = try request(server.baseURL) { $0.httpMethod = "PUT" }
        let missing = URL(fileURLWithPath: "/nonexistent/\(UUID().uuidString)")
        await #expect {
            _ = try await session.upload(for: put, fromFile: missing)
        } throws: {
            ($0 as? URLError)?.code == .fileDoesNotExist
        }
        #expect(server.requestCount == 0)
    }

    // MARK: - Endings

    @Test func cancelledTaskEndsTheRequest() async throws {
        let (arrivals, arrived) = AsyncStream<Void>.makeStream()
        let (closes, closed) = AsyncStream<Void>.makeStream()
        let server = try LoopbackServer { _, connection in
            arrived.yield()
            connection.waitForClose()
            closed.yield()
        }
        let delegate = RecordingDelegate()
        let session = try await URLSession.loading(
            { $0.collapsing.abandoned = .cancel },
            delegate: delegate
        )
        let task = session.dataTask(with: try request(server.baseURL))
        task.resume()
        for await _ in arrivals { break }
        task.cancel()
        #expect(await delegate.eventsToTheEnd() == [.end(NSURLErrorCancelled)])
        for await _ in closes { break }
        #expect(server.requestCount == 1)
    }

    @Test func suspendedTaskGetsNothingUntilItIsResumed() async throws {
        let gate = LoopbackGate()
        let (arrivals, arrived) = AsyncStream<Void>.makeStream()
        let server = try LoopbackServer { _, connection in
            arrived.yield()
            gate.wait()
            connection.respond(body: "x")
        }
        let delegate = RecordingDelegate()
        let cache = try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin())
        let session = URLSession.loading(cache, delegate: delegate)
        let task = session.dataTask(with: try request(server.baseURL))
        task.resume()
        for await _ in arrivals { break }
        task.suspend()
        gate.open()
        await cache.waitUntilIdle()
        #expect(delegate.seen.isEmpty)
        task.resume()
        #expect(await delegate.eventsToTheEnd().last == .end(nil))
        #expect(delegate.seen.contains(.data("x")))
        #expect(server.requestCount == 1)
    }

    /// URLSession reports a suspension after the task may have been resumed.
    @Test func taskThatIsSuspendedAndResumedAtOnceEnds() async throws {
        let server = try Self.echo()
        let delegate = RecordingDelegate()
        let session = try await URLSession.loading(delegate: delegate)
        for number in 0..<50 {
            let task = session.dataTask(with: try request(server.baseURL + "/\(number)"))
            task.resume()
            task.suspend()
            task.resume()
            #expect(await delegate.eventsToTheEnd().last == .end(nil))
        }
        #expect(server.requestCount == 50)
    }

    @Test func challengeIsAnsweredByTheDelegate() async throws {
        let server = try LoopbackServer { request, connection in
            guard request["Authorization"] != nil else {
                return connection.respond(401, [("WWW-Authenticate", "Basic realm=\"here\"")])
            }
            connection.respond(body: "secret")
        }
        let delegate = RecordingDelegate(
            credential: URLCredential(user: "a", password: "b", persistence: .none)
        )
        let session = try await URLSession.loading(delegate: delegate)
        session.dataTask(with: try request(server.baseURL)).resume()
        let events = await delegate.eventsToTheEnd()
        #expect(events.contains(.challenge("here")))
        #expect(events.contains(.data("secret")))
        #expect(server.requestCount == 2)
    }

    @Test func passwordReachesTheOriginBehindAStoredChallenge() async throws {
        let server = try LoopbackServer { request, connection in
            guard request["Authorization"] != nil else {
                let fields = [
                    ("WWW-Authenticate", "Basic realm=\"here\""), ("Cache-Control", "max-age=60"),
                ]
                return connection.respond(401, fields)
            }
            connection.respond(body: "secret")
        }
        let delegate = RecordingDelegate(
            credential: URLCredential(user: "a", password: "b", persistence: .none)
        )
        let session = try await URLSession.loading(storing: .byRules, delegate: delegate)
        session.dataTask(with: try request(server.baseURL)).resume()
        let events = await delegate.eventsToTheEnd()
        #expect(events.contains(.data("secret")), "\(events)")
        #expect(server.requestCount == 2)
    }

    @Test func storedChallengeIsTheResponseIfThePolicyForbidsLoading() async throws {
        let server = try LoopbackServer { _, connection in
            let fields = [
                ("WWW-Authenticate", "Basic realm=\"here\""), ("Cache-Control", "max-age=60"),
            ]
            connection.respond(401, fields, body: "no")
        }
        let cache = try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin())
        let anonymous = URLSession.loading(cache, storing: .byRules)
        _ = try await anonymous.data(for: try request(server.baseURL))
        let delegate = RecordingDelegate(
            credential: URLCredential(user: "a", password: "b", persistence: .none)
        )
        let session = URLSession.loading(cache, storing: .byRules, delegate: delegate)
        let offline = try request(server.baseURL) { $0.cachePolicy = .returnCacheDataDontLoad }
        session.dataTask(with: offline).resume()
        let events = await delegate.eventsToTheEnd()
        #expect(events == [.response(401), .data("no"), .end(nil)])
        #expect(server.requestCount == 1)
    }

    /// URLSession on Linux never ends a task whose challenge has no answer.
    @Test func challengeWithoutAnAnswerIsTheResponse() async throws {
        let server = try LoopbackServer { _, connection in
            connection.respond(401, [("WWW-Authenticate", "Basic realm=\"here\"")], body: "no")
        }
        let asked = try request(server.baseURL)
        for delegate in [nil, RecordingDelegate()] {
            let session = try await URLSession.loading(delegate: delegate)
            let (data, response) = try await session.data(for: asked)
            let head = try #require(response as? HTTPURLResponse)
            #expect(String(decoding: data, as: UTF8.self) == "no")
            #expect(head.statusCode == 401)
            let field = head.value(forHTTPHeaderField: "Origin-WWW-Authenticate")
            #expect(field == "Basic realm=\"here\"")
        }
        #expect(server.requestCount == 2)
    }

    // MARK: - Sessions

    @Test func sessionsKeepTheirCachesApart() async throws {
        let server = try Self.echo()
        let first = try await URLSession.loading()
        let second = try await URLSession.loading()
        for session in [first, second, first, second] {
            _ = try await session.data(for: try request(server.baseURL + "/same"))
        }
        #expect(server.requestCount == 2)
    }

    @Test func innerSessionDoesNotLoadThroughTheCacheAgain() async throws {
        let server = try Self.echo()
        let outer = try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin())
        let configuration = URLSessionConfiguration.ephemeral
        configuration.load(through: outer)
        let origin = URLSessionOrigin(configuration: configuration)
        #expect((configuration.urlCache as? EngineURLCache)?.cache === outer)
        let cache = try await HTTPCache(configuration: .ephemeral(), origin: origin)
        let session = URLSession.loading(cache)
        _ = try await session.data(for: try request(server.baseURL + "/x"))
        #expect(server.requestCount == 1)
        #expect(await outer.statistics.memory.entries == 0)
    }

    @Test func fieldsAndPolicyOfTheConfigurationApply() async throws {
        let server = try LoopbackServer { request, connection in
            connection.respond(
                200,
                [("Cache-Control", "max-age=60")],
                body: (request["X-App"] ?? "none") + " " + (request["Cache-Control"] ?? "none")
            )
        }
        let cache = try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin())
        let configuration = URLSessionConfiguration.ephemeral
        configuration.load(through: cache)
        configuration.httpAdditionalHeaders = ["X-App": "seven"]
        configuration.requestCachePolicy = .reloadIgnoringLocalAndRemoteCacheData
        let session = URLSession(configuration: configuration)
        for _ in 0..<2 {
            let (data, _) = try await session.data(for: try request(server.baseURL))
            #expect(String(decoding: data, as: UTF8.self) == "seven no-cache")
        }
        #expect(server.requestCount == 2)
    }

    @Test func cookiesAreKeptAndSent() async throws {
        let server = try LoopbackServer { request, connection in
            let fields = [("Set-Cookie", "id=7; Path=/"), ("Cache-Control", "no-store")]
            connection.respond(200, fields, body: request["Cookie"] ?? "none")
        }
        let session = try await URLSession.loading()
        for expected in ["none", "id=7"] {
            let (data, _) = try await session.data(for: try request(server.baseURL + "/"))
            #expect(String(decoding: data, as: UTF8.self) == expected)
        }
    }

    /// A stored line would undo what has happened to its cookie since, such as a logout.
    @Test(arguments: [nil, "id=8"])
    func cookieOfAConfirmedResponseIsNotKeptAgain(changed: String?) async throws {
        let server = try LoopbackServer.confirming(changed: changed)
        let session = try await URLSession.loading()
        let storage = try #require(session.configuration.httpCookieStorage)
        for _ in 0..<2 {
            for cookie in storage.cookies ?? [] { storage.deleteCookie(cookie) }
            let (data, _) = try await session.data(for: try request(server.baseURL + "/"))
            #expect(String(decoding: data, as: UTF8.self) == "x")
        }
        #expect(server.requests.map { $0["If-None-Match"] } == [nil, "\"1\""])
        #expect((storage.cookies ?? []).map(\.value) == (changed == nil ? [] : ["8"]))
    }
}
