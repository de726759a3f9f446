import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Testing

/// The results that a URLSession delivers when it uses the engine.
@Suite(.timeLimit(.minutes(1))) struct SessionDeliveryTests {
    let cache: EngineURLCache
    let session: URLSession

    init() async throws {
        cache = try await EngineURLCache.open(.ephemeral())
        session = URLSession.using(cache)
    }

    private func load(
        _ url: String,
        _ change: (inout URLRequest) -> Void = { _ in }
    ) async throws -> (text: String, head: HTTPURLResponse) {
        var request = URLRequest(url: try #require(URL(string: url)))
        change(&request)
        let (data, response) = try await session.data(for: request)
        return (String(decoding: data, as: UTF8.self), try #require(response as? HTTPURLResponse))
    }

    @Test(arguments: [
        [("Vary", "Accept"), ("Cache-Control", "max-age=60")],
        [("Cache-Control", "no-store")],
        [("Cache-Control", "no-cache, max-age=60"), ("ETag", "\"1\"")],
        [("Cache-Control", "private,\tno-cache"), ("ETag", "\"1\"")],
        [("Expires", "Thu, 01 Dec 2095 16:00:00 GMT")],
        [("Cache-Control", "max-age=0")],
        [("Expires", "0")],
        [("Date", "Thu, 01 Dec 1994 16:00:00 GMT"), ("Cache-Control", "max-age=5")],
    ])
    func answerIsTakenWhateverItsFieldsSay(fields: [(String, String)]) async throws {
        let server = try LoopbackServer { _, connection in
            connection.respond(200, fields, body: "x")
        }
        let (text, head) = try await load(server.baseURL + "/")
        #expect(text == "x")
        #expect(server.requestCount == 1)
        for (name, value) in fields {
            let seen = head.value(forHTTPHeaderField: name)
            let moved = head.value(forHTTPHeaderField: "Origin-" + name)
            #expect(seen == value || moved == value, "\(name)")
        }
    }

    @Test func concurrentTasksAreOneRequest() async throws {
        let gate = LoopbackGate()
        let (events, continuation) = AsyncStream<Void>.makeStream()
        let server = try LoopbackServer { _, connection in
            continuation.yield()
            gate.wait()
            connection.respond(200, [("Cache-Control", "max-age=60")], body: "x")
        }
        let url = server.baseURL + "/"
        let texts = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<20 { group.addTask { try await load(url).text } }
            for await _ in events { break }
            gate.open()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(texts == Array(repeating: "x", count: 20))
        #expect(server.requestCount == 1)
    }

    @Test func variantsAreKeptApart() async throws {
        let server = try LoopbackServer { request, connection in
            let fields = [("Vary", "Accept"), ("Cache-Control", "max-age=60")]
            connection.respond(200, fields, body: request["Accept"] ?? "none")
        }
        for _ in 0..<2 {
            for type in ["text/html", "text/plain"] {
                let text = try await load(server.baseURL + "/") {
                    $0.setValue(type, forHTTPHeaderField: "Accept")
                }.text
                #expect(text == type)
            }
        }
        #expect(server.requestCount == 2)
    }

    /// The delivered response has another lifetime and no `Vary`; the stored one has the origin's.
    @Test func deliveredResponseIsStoredAgainAsTheOriginSentIt() async throws {
        let server = try LoopbackServer { request, connection in
            let fields = [("Vary", "Accept"), ("Cache-Control", "max-age=60")]
            connection.respond(200, fields, body: request["Accept"] ?? "none")
        }
        let clock = TestClock()
        var configuration = HTTPCache.Configuration.ephemeral()
        configuration.clock = clock
        let own = try await EngineURLCache.open(configuration)
        let session = URLSession.using(own)
        var html = URLRequest(url: try #require(URL(string: server.baseURL + "/")))
        html.setValue("text/html", forHTTPHeaderField: "Accept")
        var plain = html
        plain.setValue("text/plain", forHTTPHeaderField: "Accept")
        let (data, response) = try await session.data(for: html)
        own.storeCachedResponse(CachedURLResponse(response: response, data: data), for: html)
        _ = try await session.data(for: html)
        #expect(server.requestCount == 1)
        let (other, _) = try await session.data(for: plain)
        #expect(String(decoding: other, as: UTF8.self) == "text/plain")
        #expect(server.requestCount == 2)
        clock.advance(seconds: 61)
        _ = try await session.data(for: html)
        #expect(server.requestCount == 3)
    }

    @Test(arguments: ["POST", "PUT", "DELETE"])
    func otherMethodsAreSentOnceByTheSession(method: String) async throws {
        let server = try LoopbackServer { request, connection in
            connection.respond(body: "\(request.method) \(request.body.count)")
        }
        let text = try await load(server.baseURL + "/") {
            $0.httpMethod = method
            $0.httpBody = Data("abc".utf8)
        }.text
        #expect(text == "\(method) 3")
        #expect(server.requestCount == 1)
    }

    @Test func requestWithCredentialsIsTheSessionsOwn() async throws {
        let server = try LoopbackServer { _, connection in
            connection.respond(200, [("Cache-Control", "max-age=60")], body: "secret")
        }
        for _ in 0..<2 {
            _ = try await load(server.baseURL + "/") {
                $0.setValue("Basic YTpi", forHTTPHeaderField: "Authorization")
            }
        }
        #expect(server.requestCount == 2)
    }

    @Test func redirectIsFollowedAndRemembered() async throws {
        let server = try LoopbackServer { request, connection in
            let lifetime = ("Cache-Control", "max-age=60")
            if request.path == "/old" {
                connection.respond(301, [("Location", "/new"), lifetime])
            } else {
                connection.respond(200, [lifetime], body: "new")
            }
        }
        for _ in 0..<2 {
            let (text, head) = try await load(server.baseURL + "/old")
            #expect(text == "new")
            #expect(head.url?.path == "/new")
        }
        #expect(server.requestCount == 2)
    }

    @Test(arguments: [nil, "own=1", "own=1; id=0"])
    func cookieOfARedirectIsSentToItsTarget(own: String?) async throws {
        let server = try LoopbackServer { request, connection in
            if request.path == "/in" {
                connection.respond(302, [("Set-Cookie", "id=7; Path=/"), ("Location", "/out")])
            } else {
                connection.respond(body: request["Cookie"] ?? "none")
            }
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = EngineURLCache(
            try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin()),
            cookieStorage: configuration.httpCookieStorage,
            additionalFields: own.map { ["Cookie": $0] } ?? [:]
        )
        let url = try #require(URL(string: server.baseURL + "/in"))
        let (data, _) = try await URLSession(configuration: configuration).data(from: url)
        #expect(String(decoding: data, as: UTF8.self) == (own == nil ? "id=7" : "own=1; id=7"))
        #expect(server.requestCount == 2)
    }

    @Test func credentialsOfAdditionalFieldsStayWithTheirOrigin() async throws {
        let target = try LoopbackServer { _, connection in connection.respond(body: "end") }
        let server = try LoopbackServer { _, connection in
            connection.respond(302, [("Location", target.baseURL + "/")])
        }
        let own = EngineURLCache(
            try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin()),
            additionalFields: [
                "authorization": "Basic YTpi", "Proxy-Authorization": "x", "X-App": "7",
            ]
        )
        let url = try #require(URL(string: server.baseURL + "/"))
        let (data, _) = try await URLSession.using(own).data(from: url)
        #expect(String(decoding: data, as: UTF8.self) == "end")
        #expect(server.requests.first?["Authorization"] == "Basic YTpi")
        let last = try #require(target.requests.last)
        #expect(last["X-App"] == "7")
        #expect(last["Authorization"] == nil && last["Proxy-Authorization"] == nil)
    }

    @Test func endlessRedirectIsLeftToTheSession() async throws {
        let server = try LoopbackServer { _, connection in
            connection.respond(302, [("Location", "/again")])
        }
        await #expect(throws: (any Error).self) { try await load(server.baseURL + "/again") }
        #expect(server.requestCount <= 60)
    }

    @Test func statusTheSessionTakesFromNoCacheIsStillDelivered() async throws {
        let server = try LoopbackServer { _, connection in
            connection.respond(503, [], body: "busy")
        }
        let (text, head) = try await load(server.baseURL + "/")
        #expect(text == "busy")
        #expect(head.statusCode == 503)
    }

    @Test func unreachableOriginIsTheSessionsError() async throws {
        let server = try LoopbackServer { _, connection in connection.respond() }
        let url = server.baseURL + "/"
        server.stop()
        await #expect(throws: URLError.self) { try await load(url) }
    }

    @Test func cancelledTaskEndsAtOnce() async throws {
        let (events, continuation) = AsyncStream<Void>.makeStream()
        let server = try LoopbackServer { _, connection in
            continuation.yield()
            connection.waitForClose()
        }
        let url = server.baseURL + "/"
        let task = Task { try await load(url) }
        for await _ in events { break }
        task.cancel()
        // The server never answers, so only the cancellation can end the task.
        await #expect(throws: (any Error).self) { _ = try await task.value }
        // URLSession may begin a load of its own before it carries out the cancellation.
        #expect(server.requestCount <= 2)
    }

    @Test func cookiesOfAnswersAreKept() async throws {
        let storage = HTTPCookieStorage.shared
        let server = try LoopbackServer { request, connection in
            let fields = [("Set-Cookie", "id=7; Path=/"), ("Cache-Control", "no-store")]
            connection.respond(200, fields, body: request["Cookie"] ?? "none")
        }
        // A host of its own: all tests share the storage, which knows hosts only.
        let base = server.baseURL.replacing("127.0.0.1", with: "localhost")
        #expect(try await load(base + "/").text == "none")
        #expect(try await load(base + "/").text == "id=7")
        let url = try #require(URL(string: base))
        for cookie in storage.cookies(for: url) ?? [] { storage.deleteCookie(cookie) }
    }

    /// A stored line would undo what has happened to its cookie since, such as a logout.
    @Test(arguments: [nil, "id=8"])
    func cookieOfAConfirmedResponseIsNotKeptAgain(changed: String?) async throws {
        let server = try LoopbackServer.confirming(changed: changed)
        let configuration = URLSessionConfiguration.ephemeral
        let storage = try #require(configuration.httpCookieStorage)
        configuration.urlCache = EngineURLCache(
            try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin()),
            cookieStorage: storage
        )
        let session = URLSession(configuration: configuration)
        let url = try #require(URL(string: server.baseURL + "/"))
        for _ in 0..<2 {
            for cookie in storage.cookies ?? [] { storage.deleteCookie(cookie) }
            let (data, _) = try await session.data(from: url)
            #expect(String(decoding: data, as: UTF8.self) == "x")
        }
        #expect(server.requests.map { $0["If-None-Match"] } == [nil, "\"1\""])
        #expect((storage.cookies ?? []).map(\.value) == (changed == nil ? [] : ["8"]))
    }

    @Test func sessionGetsTheStoredResponseForABodyThatBreaksOff() async throws {
        let server = try LoopbackServer { request, connection in
            if request["If-None-Match"] == nil {
                let fields = [("Cache-Control", "max-age=0"), ("ETag", "\"1\"")]
                return connection.respond(200, fields, body: "whole")
            }
            connection.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n")
            connection.send("Content-Length: 9\r\n\r\nhalf")
            connection.close()
        }
        let url = server.baseURL + "/"
        for _ in 0..<2 { #expect(try await load(url).text == "whole") }
        #expect(server.requestCount == 2)
    }

    @Test func largeBodyIsLeftToTheSession() async throws {
        let server = try LoopbackServer { _, connection in
            connection.respond(bytes: [UInt8](repeating: 1, count: 3 << 20))
        }
        let configuration = HTTPCache.Configuration.ephemeral()
        let small = EngineURLCache(
            try await HTTPCache(configuration: configuration, origin: URLSessionOrigin()),
            maximumDeliverySize: .megabytes(1)
        )
        let url = try #require(URL(string: server.baseURL))
        let (data, _) = try await URLSession.using(small).data(from: url)
        #expect(data.count == 3 << 20)
    }
}
