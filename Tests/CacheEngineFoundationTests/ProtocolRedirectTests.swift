import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Testing

/// Redirects of a session that loads through a cache.
@Suite(.timeLimit(.minutes(1))) struct ProtocolRedirectTests {
    /// `/old` leads to `/new` with the status in the query.
    private static func server() throws -> LoopbackServer {
        try LoopbackServer { request, connection in
            let lifetime = ("Cache-Control", "max-age=60")
            if request.path == "/old" {
                let status = Int(request.target.suffix(3)) ?? 302
                return connection.respond(status, [("Location", "/new"), lifetime], body: "moved")
            }
            let content = String(decoding: request.body, as: UTF8.self)
            connection.respond(200, [lifetime], body: "\(request.method) \(content)")
        }
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func redirectIsFollowedAndRemembered(status: Int) async throws {
        let server = try Self.server()
        let session = try await URLSession.loading()
        let url = try #require(URL(string: server.baseURL + "/old?\(status)"))
        for _ in 0..<2 {
            let (data, response) = try await session.data(from: url)
            #expect(String(decoding: data, as: UTF8.self) == "GET ")
            #expect(response.url?.path == "/new")
        }
        #expect(server.requestCount == 2)
    }

    @Test(arguments: [
        (301, "GET "), (302, "GET "), (303, "GET "), (307, "POST x"), (308, "POST x"),
    ])
    func methodAndContentFollowTheStatus(status: Int, expected: String) async throws {
        let server = try Self.server()
        let session = try await URLSession.loading()
        var post = URLRequest(url: try #require(URL(string: server.baseURL + "/old?\(status)")))
        post.httpMethod = "POST"
        let (data, _) = try await session.upload(for: post, from: Data("x".utf8))
        #expect(String(decoding: data, as: UTF8.self) == expected)
    }

    @Test func delegateFollowsChangesOrRefuses() async throws {
        let server = try Self.server()
        let url = try #require(URL(string: server.baseURL + "/old?302"))
        let other = try #require(URL(string: server.baseURL + "/other"))
        let rows: [(@Sendable (URLRequest) -> URLRequest?, String, Int)] = [
            ({ $0 }, "GET ", 200), ({ _ in URLRequest(url: other) }, "GET ", 200),
            ({ _ in nil }, "moved", 302),
        ]
        for (decision, body, status) in rows {
            let delegate = RecordingDelegate(redirect: decision)
            let session = try await URLSession.loading(delegate: delegate)
            session.dataTask(with: url).resume()
            let events = await delegate.eventsToTheEnd()
            #expect(events.first == .redirect(302, to: "/new"))
            #expect(events.contains(.response(status)))
            #expect(events.contains(.data(body)))
            #expect(events.last == .end(nil))
        }
        #expect(server.requests.contains { $0.path == "/other" })
    }

    /// What the delegate returns is sent: neither more content nor less.
    @Test func delegateChoosesTheContent() async throws {
        let server = try Self.server()
        let target = try #require(URL(string: server.baseURL + "/new"))
        let rows: [(Int, @Sendable (URLRequest) -> URLRequest?, String)] = [
            (307, { $0 }, "POST x"),
            (307, { _ in URLRequest(url: target) }, "GET "),
            (
                302,
                {
                    var next = $0
                    next.httpMethod = "POST"
                    next.httpBody = Data("y".utf8)
                    return next
                }, "POST y"
            ),
        ]
        for (status, decision, expected) in rows {
            let delegate = RecordingDelegate(redirect: decision)
            let session = try await URLSession.loading(delegate: delegate)
            let url = try #require(URL(string: server.baseURL + "/old?\(status)"))
            var post = URLRequest(url: url)
            post.httpMethod = "POST"
            session.uploadTask(with: post, from: Data("x".utf8)).resume()
            #expect(await delegate.eventsToTheEnd().contains(.data(expected)))
        }
    }

    @Test func endlessRedirectIsAnError() async throws {
        let server = try LoopbackServer { _, connection in
            connection.respond(302, [("Location", "/again"), ("Cache-Control", "no-store")])
        }
        let session = try await URLSession.loading()
        let url = try #require(URL(string: server.baseURL + "/again"))
        await #expect {
            _ = try await session.data(from: url)
        } throws: {
            ($0 as? URLError)?.code == .httpTooManyRedirects
        }
        #expect(server.requestCount == 21)
    }

    @Test func credentialsStayWithTheirOrigin() async throws {
        let target = try LoopbackServer { request, connection in
            connection.respond(body: (request["Authorization"] ?? "") + (request["Cookie"] ?? ""))
        }
        let server = try LoopbackServer { _, connection in
            connection.respond(302, [("Location", target.baseURL + "/")])
        }
        let session = try await URLSession.loading()
        var request = URLRequest(url: try #require(URL(string: server.baseURL)))
        request.setValue("Basic YTpi", forHTTPHeaderField: "Authorization")
        request.setValue("id=7", forHTTPHeaderField: "Cookie")
        let (data, _) = try await session.data(for: request)
        #expect(data.isEmpty)
        #expect(server.requests.first?["Authorization"] == "Basic YTpi")
    }

    /// They do not come back either, if the other origin redirects to the first one.
    @Test func credentialsOfTheSessionStayWithTheirOrigin() async throws {
        let target = try LoopbackServer { request, connection in
            let host = request.target.split(separator: "?").last ?? ""
            let next = request.path == "/a" ? "/b?\(host)" : "http://\(host)/back"
            connection.respond(302, [("Location", next)])
        }
        let server = try LoopbackServer { request, connection in
            if request.path == "/back" { return connection.respond(body: "end") }
            let next = target.baseURL + "/a?" + (request["Host"] ?? "")
            connection.respond(302, [("Location", next)])
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.load(
            through: try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin())
        )
        configuration.httpAdditionalHeaders = [
            "Authorization": "Basic YTpi", "cookie": "id=7", "Proxy-Authorization": "x",
            "X-App": "7",
        ]
        let session = URLSession(configuration: configuration)
        let url = try #require(URL(string: server.baseURL))
        let (data, _) = try await session.data(from: url)
        #expect(String(decoding: data, as: UTF8.self) == "end")
        let first = try #require(server.requests.first)
        #expect(first["Authorization"] == "Basic YTpi" && first["Cookie"] == "id=7")
        let later = target.requests + server.requests.dropFirst()
        #expect(later.map(\.path) == ["/a", "/b", "/back"])
        for request in later {
            #expect(request["X-App"] == "7")
            for name in ["Authorization", "Cookie", "Proxy-Authorization"] {
                #expect(request[name] == nil, "\(name) at \(request.path)")
            }
        }
    }
}
