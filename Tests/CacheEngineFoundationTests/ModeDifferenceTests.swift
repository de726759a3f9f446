import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Testing

/// The rows of the article on URLCache.
///
/// Each list has the results of a plain session, of one with the drop-in, and of one that loads
/// through the cache.
@Suite(.timeLimit(.minutes(1))) struct ModeDifferenceTests {
    private func sessions(
        _ delegates: [RecordingDelegate?] = [nil, nil, nil],
        through origin: URLSessionOrigin = URLSessionOrigin(),
        _ change: (URLSessionConfiguration) -> Void = { _ in }
    ) async throws -> [URLSession] {
        let plain = URLSessionConfiguration.ephemeral
        plain.urlCache = nil
        let dropIn = URLSessionConfiguration.ephemeral
        dropIn.urlCache = try await EngineURLCache.open(.ephemeral())
        let exact = URLSessionConfiguration.ephemeral
        exact.load(
            through: try await HTTPCache(configuration: .ephemeral(), origin: origin)
        )
        return zip([plain, dropIn, exact], delegates).map { configuration, delegate in
            change(configuration)
            return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        }
    }

    private func request(
        _ server: LoopbackServer,
        _ fields: [String: String] = [:],
        _ change: (inout URLRequest) -> Void = { _ in }
    ) throws -> URLRequest {
        var request = URLRequest(url: try #require(URL(string: server.baseURL + "/x")))
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        change(&request)
        return request
    }

    private func text(_ session: URLSession, _ request: URLRequest) async throws -> String {
        String(decoding: try await session.data(for: request).0, as: UTF8.self)
    }

    /// The status, or the code of the error.
    private func result(_ session: URLSession, _ request: URLRequest) async throws -> Int {
        do {
            let (_, response) = try await session.data(for: request)
            return try #require(response as? HTTPURLResponse).statusCode
        } catch {
            return try #require(error as? URLError).code.rawValue
        }
    }

    private static func fresh() throws -> LoopbackServer {
        try LoopbackServer { request, connection in
            connection.respond(
                200,
                [("Cache-Control", "max-age=60")],
                body: request["X-App"] ?? "ok"
            )
        }
    }

    // MARK: - Requests

    @Test func repeatedDataAndDownloadTasks() async throws {
        var data: [Int] = []
        var downloads: [Int] = []
        for session in try await sessions() {
            let server = try Self.fresh()
            for _ in 0..<2 { _ = try await text(session, try request(server)) }
            data.append(server.requestCount)
        }
        for session in try await sessions() {
            let server = try Self.fresh()
            for _ in 0..<2 {
                let (file, _) = try await session.download(for: try request(server))
                try FileManager.default.removeItem(at: file)
            }
            downloads.append(server.requestCount)
        }
        #expect(data == [2, 1, 1])
        #expect(downloads == [2, 2, 1])
    }

    @Test func concurrentTasks() async throws {
        for (session, expected) in zip(try await sessions(), [5, 1, 1]) {
            let gate = LoopbackGate()
            let (arrivals, arrived) = AsyncStream<Void>.makeStream()
            let server = try LoopbackServer { _, connection in
                arrived.yield()
                gate.wait()
                connection.respond(200, [("Cache-Control", "max-age=60")], body: "ok")
            }
            let asked = try request(server)
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<5 { group.addTask { try await text(session, asked) } }
                var count = 0
                for await _ in arrivals {
                    count += 1
                    if count == expected { break }
                }
                gate.open()
                for try await body in group { #expect(body == "ok") }
            }
            #expect(server.requestCount == expected)
        }
    }

    @Test func requestsWithCredentials() async throws {
        var counts: [Int] = []
        for session in try await sessions() {
            let server = try Self.fresh()
            let asked = try request(server, ["Authorization": "Basic YTpi"])
            for _ in 0..<2 { _ = try await text(session, asked) }
            counts.append(server.requestCount)
        }
        #expect(counts == [2, 2, 1])
    }

    @Test func additionalFields() async throws {
        let server = try Self.fresh()
        var texts: [String] = []
        for session in try await sessions(
            [nil, nil, nil],
            { $0.httpAdditionalHeaders = ["X-App": "7"] }
        ) {
            texts.append(try await text(session, try request(server)))
        }
        #expect(texts == ["7", "ok", "7"])
    }

    /// The body or the failure of a second load after the resource has changed, and the requests of
    /// both loads, under a policy that the configuration names.
    @Test(arguments: [
        (URLRequest.CachePolicy.useProtocolCachePolicy, ["v2 2", "v1 1", "v1 1"]),
        (.reloadIgnoringLocalCacheData, ["v2 2", "v2 2", "v2 2"]),
        (.reloadIgnoringLocalAndRemoteCacheData, ["v2 2", "v2 2", "v2 2"]),
        (.returnCacheDataElseLoad, ["v2 2", "v1 1", "v1 1"]),
        (.returnCacheDataDontLoad, ["v2 2", "failed 0", "failed 0"]),
        (.reloadRevalidatingCacheData, ["v2 2", "v2 2", "v2 2"]),
    ])
    func policyOfTheConfiguration(
        policy: URLRequest.CachePolicy,
        expected: [String]
    ) async throws {
        var results: [String] = []
        for session in try await sessions([nil, nil, nil], { $0.requestCachePolicy = policy }) {
            let origin = try PolicyOrigin()
            let url = try #require(URL(string: origin.server.baseURL + "/fresh"))
            _ = try? await session.data(from: url)
            origin.change()
            let body = try? await session.data(from: url).0
            let text = body.map { String(decoding: $0, as: UTF8.self) } ?? "failed"
            results.append(text.replacing("\"", with: "") + " \(origin.server.requestCount)")
        }
        #expect(results == expected)
    }

    // MARK: - Failures

    @Test func missUnderDontLoad() async throws {
        let server = try Self.fresh()
        var results: [Int] = []
        for session in try await sessions() {
            let asked = try request(server) { $0.cachePolicy = .returnCacheDataDontLoad }
            results.append(try await result(session, asked))
        }
        #expect(results == [200, -999, -1008])
    }

    /// Requests that the drop-in leaves to URLSession.
    @Test(arguments: ["POST", "GET"])
    func loadThatThePolicyForbids(method: String) async throws {
        var results: [Int] = []
        for session in try await sessions() {
            let server = try Self.fresh()
            let asked = try request(server, ["Authorization": "Basic YTpi"]) {
                $0.httpMethod = method
                $0.cachePolicy = .returnCacheDataDontLoad
            }
            results.append(try await result(session, asked))
            #expect(server.requestCount == (results.count == 1 ? 1 : 0))
        }
        #expect(results == [200, -999, -1008])
    }

    @Test(arguments: [
        ("", [-1011, -1011, -1005]),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", [-1, -1, -1005]),
        ("HTTP/1.1 304 Not Modified\r\n\r\n", [304, 304, -1011]),
    ])
    func brokenResponses(sent: String, expected: [Int]) async throws {
        let server = try LoopbackServer { _, connection in
            if !sent.isEmpty { connection.send(sent) }
            connection.close()
        }
        var results: [Int] = []
        for session in try await sessions() {
            results.append(try await result(session, try request(server)))
        }
        #expect(results == expected)
    }

    @Test func missingOrigin() async throws {
        let url = try #require(URL(string: "http://127.0.0.1:\(ClosedPort.number)/"))
        for session in try await sessions() {
            #expect(try await result(session, URLRequest(url: url)) == -1004)
        }
    }

    @Test func silentOrigin() async throws {
        let server = try LoopbackServer { _, connection in connection.waitForClose() }
        for session in try await sessions() {
            let asked = try request(server) { $0.timeoutInterval = 1 }
            #expect(try await result(session, asked) == -1001)
        }
    }

    @Test func silentOriginAndATimeoutOfTheSession() async throws {
        var counts: [Int] = []
        for number in 0..<3 {
            let server = try LoopbackServer { _, connection in connection.waitForClose() }
            let all = try await sessions { $0.timeoutIntervalForRequest = 1 }
            let start = ContinuousClock.now
            #expect(try await result(all[number], try request(server)) == -1001)
            #expect(ContinuousClock.now - start < .seconds(20))
            counts.append(server.requestCount)
        }
        #expect(counts == [1, 2, 1])
    }

    @Test func cacheThatWasShutDown() async throws {
        let server = try Self.fresh()
        var results: [Int] = []
        for session in try await sessions() {
            let facade = session.configuration.urlCache as? EngineURLCache
            await facade?.cache.shutDown()
            results.append(try await result(session, try request(server)))
        }
        #expect(results == [200, 200, -1])
    }

    // MARK: - Delegates

    @Test func bodyForADelegate() async throws {
        let delegates = [RecordingDelegate(), RecordingDelegate(), RecordingDelegate()]
        for (session, delegate) in zip(try await sessions(delegates), delegates) {
            let gate = LoopbackGate()
            let (arrivals, arrived) = AsyncStream<Void>.makeStream()
            let server = try LoopbackServer { _, connection in
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none")
                arrived.yield()
                gate.wait()
                connection.send("two")
            }
            session.dataTask(with: try request(server)).resume()
            if delegate === delegates[1] {
                for await _ in arrivals { break }
            } else {
                for await event in delegate.events where event == .data("one") { break }
            }
            gate.open()
            let events = await delegate.eventsToTheEnd()
            let isWhole = events.contains(.data("onetwo"))
            #expect(isWhole == (delegate === delegates[1]))
        }
    }

    /// URLSession on Linux cannot pause a transfer, so the bytes wait in memory, up to the window.
    @Test func delegateThatPauses() async throws {
        let delegates = [RecordingDelegate(), RecordingDelegate(), RecordingDelegate()]
        let origin = URLSessionOrigin(maximumWindow: .megabytes(1))
        var ends: [RecordingDelegate.Event?] = []
        for (session, delegate) in zip(try await sessions(delegates, through: origin), delegates) {
            let isGivenUp = delegate === delegates[2]
            let (arrivals, arrived) = AsyncStream<Void>.makeStream()
            let server = try LoopbackServer { _, connection in
                let part = [UInt8](repeating: 65, count: 1 << 16)
                connection.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n")
                connection.send("Content-Length: \(128 * part.count + 1)\r\n\r\n")
                for _ in 0..<128 where !connection.send(part) { break }
                // The last byte is missing, so no connection is closed before its load is given up.
                if isGivenUp { connection.waitForClose() }
                arrived.yield()
                connection.send([65])
            }
            session.delegateQueue.isSuspended = true
            session.dataTask(with: try request(server)).resume()
            for await _ in arrivals { break }
            session.delegateQueue.isSuspended = false
            ends.append(await delegate.eventsToTheEnd().last)
            #expect(server.requestCount == 1)
        }
        #expect(ends == [.end(nil), .end(nil), .end(-1103)])
    }

    @Test func storingIsProposed() async throws {
        let delegates = [RecordingDelegate(), RecordingDelegate(), RecordingDelegate()]
        let server = try Self.fresh()
        var counts: [Int] = []
        for (session, delegate) in zip(try await sessions(delegates), delegates) {
            session.dataTask(with: try request(server)).resume()
            let events = await delegate.eventsToTheEnd()
            counts.append(events.filter { $0 == .proposal("ok") }.count)
        }
        #expect(counts == [0, 0, 1])
    }

    @Test func redirectIsProposed() async throws {
        let delegates = [RecordingDelegate(), RecordingDelegate(), RecordingDelegate()]
        let server = try LoopbackServer { request, connection in
            if request.path == "/x" { return connection.respond(301, [("Location", "/new")]) }
            connection.respond(body: "new")
        }
        var isAsked: [Bool] = []
        for (session, delegate) in zip(try await sessions(delegates), delegates) {
            let task = session.dataTask(with: try request(server))
            task.resume()
            let events = await delegate.eventsToTheEnd()
            isAsked.append(events.contains(.redirect(301, to: "/new")))
            #expect(events.contains(.data("new")))
            #expect(task.response?.url?.path == "/new")
            let current = delegate === delegates[0] ? "/new" : "/x"
            #expect(task.currentRequest?.url?.path == current)
        }
        #expect(isAsked == [true, false, true])
    }

    @Test(arguments: [
        ["Basic realm=\"here\""], ["Basic realm=here"], ["Negotiate", "Basic realm=\"here\""],
        ["Digest realm=\"d\", Basic realm=\"here\""],
    ])
    func challengeIsProposed(challenges: [String]) async throws {
        let password = URLCredential(user: "a", password: "b", persistence: .none)
        let delegates = (0..<3).map { _ in RecordingDelegate(credential: password) }
        let server = try LoopbackServer { request, connection in
            guard request["Authorization"] != nil else {
                return connection.respond(401, challenges.map { ("WWW-Authenticate", $0) })
            }
            connection.respond(body: "secret")
        }
        var counts: [Int] = []
        for (session, delegate) in zip(try await sessions(delegates), delegates) {
            let before = server.requestCount
            session.dataTask(with: try request(server)).resume()
            let events = await delegate.eventsToTheEnd()
            #expect(events.contains(.challenge("here")) && events.contains(.data("secret")))
            counts.append(server.requestCount - before)
        }
        #expect(counts == [2, 3, 2])
    }

    // MARK: - Redirects and progress

    @Test func contentAfterA307() async throws {
        let server = try LoopbackServer { request, connection in
            if request.path == "/x" { return connection.respond(307, [("Location", "/new")]) }
            connection.respond(body: String(decoding: request.body, as: UTF8.self))
        }
        var texts: [String] = []
        for session in try await sessions() {
            let post = try request(server) { $0.httpMethod = "POST" }
            let (data, _) = try await session.upload(for: post, from: Data("content".utf8))
            texts.append(String(decoding: data, as: UTF8.self))
        }
        #expect(texts == ["", "", "content"])
    }

    @Test(arguments: [
        ("Authorization", ["secret", "secret", ""]), ("Cookie", ["secret", "secret", ""]),
    ])
    func secretsAfterARedirect(field: String, expected: [String]) async throws {
        let target = try LoopbackServer { request, connection in
            connection.respond(body: request[field] ?? "")
        }
        let server = try LoopbackServer { _, connection in
            connection.respond(302, [("Location", target.baseURL + "/")])
        }
        var texts: [String] = []
        for session in try await sessions([nil, nil, nil], { $0.httpShouldSetCookies = false }) {
            texts.append(try await text(session, try request(server, [field: "secret"])))
        }
        #expect(texts == expected)
    }

    @Test func bytesThatAnUploadCounts() async throws {
        let delegates = [RecordingDelegate(), RecordingDelegate(), RecordingDelegate()]
        let server = try Self.fresh()
        var counts: [Int64] = []
        for (session, delegate) in zip(try await sessions(delegates), delegates) {
            let post = try request(server) { $0.httpMethod = "POST" }
            let task = session.uploadTask(with: post, from: Data("content".utf8))
            task.resume()
            #expect(await delegate.eventsToTheEnd().contains(.sent(7, of: 7)))
            counts.append(task.countOfBytesSent)
        }
        #expect(counts == [7, 7, 0])
    }

    @Test func bytesThatADownloadCounts() async throws {
        let delegates = [RecordingDelegate(), RecordingDelegate(), RecordingDelegate()]
        let server = try Self.fresh()
        var counts: [Int64] = []
        for (session, delegate) in zip(try await sessions(delegates), delegates) {
            let task = session.downloadTask(with: try request(server))
            task.resume()
            let events = await delegate.eventsToTheEnd()
            #expect(events.contains(.written(2, of: 2)))
            // URLSession may count after it has told the delegate.
            #expect(await eventually { task.progress.completedUnitCount > 0 })
            counts.append(task.countOfBytesReceived)
        }
        #expect(counts == [2, 2, 0])
    }
}
