import CacheEngine
import NIOCore
import NIOHTTP1
import Synchronization
import Testing
import Vapor
import VaporCache
import VaporTesting

/// The routes of an application are behind a cache of their own.
@Suite(.timeLimit(.minutes(1))) struct RouteCacheMiddlewareTests {
    /// The server has another port for each request, and the host is a part of the key.
    private static let host: HTTPHeaders = ["Host": "app.test"]

    /// Runs `body` with an application whose route `news` is `route`, behind a cache.
    private func withRoute(
        _ route: @escaping @Sendable (Request) async throws -> Response,
        configuration: HTTPCache.Configuration = HTTPCache.Configuration(),
        showsTags: Bool = false,
        prepare: @escaping CacheMiddleware.Preparation = { _, _ in },
        _ body: (any TestingApplicationTester, RouteCacheMiddleware) async throws -> Void
    ) async throws {
        let routes = try await RouteCacheMiddleware(
            configuration: configuration,
            showsTags: showsTags,
            prepare: prepare
        )
        let upkeep = Task { await routes.cache.run() }
        try await withApp { application in
            let errors = ErrorMiddleware.default(environment: application.environment)
            application.grouped(routes, errors).get("news", use: route)
            let server = try application.testing(method: .running(hostname: "127.0.0.1", port: 0))
            try await body(server, routes)
        }
        upkeep.cancel()
        await upkeep.value
    }

    @Test func aRouteRunsOnceForTwoRequests() async throws {
        let calls = Counter()
        let route: @Sendable (Request) async throws -> Response = { _ in
            calls.add()
            return Response(headers: ["Cache-Control": "max-age=60"], body: "nothing new")
        }
        try await withRoute(route) { client, _ in
            for _ in 0..<2 {
                let response = try await client.sendRequest(.GET, "/news", headers: Self.host)
                #expect(response.status == .ok && String(buffer: response.body) == "nothing new")
            }
        }
        #expect(calls.count == 1)
    }

    @Test func aHostThatNamesAnotherPathIsRefused() async throws {
        let calls = Counter()
        let route: @Sendable (Request) async throws -> Response = { request in
            calls.add()
            return Response(
                headers: ["Cache-Control": "max-age=60"],
                body: .init(string: request.headers.first(name: .host) ?? "none")
            )
        }
        try await withRoute(route) { client, _ in
            for host in ["app.test/news#", "app.test/a?x=", "app.test\\", "user@app.test"] {
                let response = try await client.sendRequest(.GET, "/news", headers: ["Host": host])
                #expect(response.status == .badRequest)
            }
            for host in ["APP.TEST:80", "app.test"] {
                let response = try await client.sendRequest(.GET, "/news", headers: ["Host": host])
                #expect(String(buffer: response.body) == "app.test")
            }
        }
        #expect(calls.count == 1)
    }

    @Test func aPurgeRemovesTheResponsesOfATag() async throws {
        let calls = Counter()
        let route: @Sendable (Request) async throws -> Response = { _ in
            calls.add()
            return Response(
                headers: ["Cache-Control": "max-age=60", "Cache-Tag": "front"],
                body: "nothing new"
            )
        }
        try await withRoute(route) { client, routes in
            for _ in 0..<2 {
                _ = try await client.sendRequest(.GET, "/news", headers: Self.host)
            }
            try await routes.cache.purge(tag: "front")
            _ = try await client.sendRequest(.GET, "/news", headers: Self.host)
        }
        #expect(calls.count == 2)
    }

    @Test func theCacheOfTheRoutesPurgesAURLAndCounts() async throws {
        let calls = Counter()
        let route: @Sendable (Request) async throws -> Response = { _ in
            calls.add()
            return Response(headers: ["Cache-Control": "max-age=60"], body: "nothing new")
        }
        try await withRoute(route) { client, routes in
            for _ in 0..<2 {
                _ = try await client.sendRequest(.GET, "/news", headers: Self.host)
            }
            #expect(await routes.cache.statistics.memory.entries == 1)
            let request = CacheRequest(url: "http://app.test/news")
            let report = try await routes.cache.purge(.request(request))
            #expect(report.entries == 1)
            _ = try await client.sendRequest(.GET, "/news", headers: Self.host)
        }
        #expect(calls.count == 2)
    }

    /// A response that is stored, one that is streamed, and one to a GET with content.
    @Test(arguments: [false, true])
    func tagsAreForCaches(showsTags: Bool) async throws {
        let route: @Sendable (Request) async throws -> Response = { request in
            var body: Response.Body = "a"
            if request.headers.contains(name: "X-Streamed") {
                body = .init(managedAsyncStream: { writer in
                    try await writer.writeBuffer(ByteBuffer(string: "a"))
                })
            }
            let lifetime = "max-age=60"
            return Response(
                headers: ["Cache-Control": lifetime, "Cache-Tag": "front", "Vary": "X-Streamed"],
                body: body
            )
        }
        try await withRoute(route, showsTags: showsTags) { client, _ in
            var streamed = Self.host
            streamed.add(name: "X-Streamed", value: "1")
            for (headers, body) in [(Self.host, nil), (streamed, nil), (Self.host, "b")] {
                let response = try await client.sendRequest(
                    .GET,
                    "/news",
                    headers: headers,
                    body: body.map { ByteBuffer(string: $0) }
                )
                #expect(String(buffer: response.body) == "a")
                #expect(response.headers.contains(name: "Cache-Tag") == showsTags)
            }
        }
    }

    @Test func aRequestIsPrepared() async throws {
        let calls = Counter()
        let route: @Sendable (Request) async throws -> Response = { request in
            calls.add()
            return Response(
                headers: ["Cache-Control": "max-age=60"],
                body: .init(string: request.headers.first(name: "X-User") ?? "none")
            )
        }
        try await withRoute(
            route,
            prepare: { question, request in
                let user = request.headers.first(name: "X-Login") ?? ""
                question.options.partition = user
                question.fields["X-User"] = user
            },
            { client, _ in
                for user in ["ann", "bob", "ann"] {
                    var headers = Self.host
                    headers.add(name: "X-Login", value: user)
                    let response = try await client.sendRequest(.GET, "/news", headers: headers)
                    #expect(String(buffer: response.body) == user)
                }
            }
        )
        #expect(calls.count == 2)
    }

    @Test func aFailureOfTheCacheHasAFixedText() async throws {
        let route: @Sendable (Request) async throws -> Response = { _ in
            throw CacheError(.originUnreachable, detail: "No connection to 10.9.8.7:4321")
        }
        let routes = try await RouteCacheMiddleware(configuration: HTTPCache.Configuration())
        try await withApp { application in
            // There is no `ErrorMiddleware` behind the cache.
            application.grouped(routes).get("news", use: route)
            let server = try application.testing(method: .running(hostname: "127.0.0.1", port: 0))
            let response = try await server.sendRequest(.GET, "/news", headers: Self.host)
            #expect(response.status == .badGateway)
            let text = String(buffer: response.body)
            #expect(text.contains("originUnreachable") && !text.contains("10.9.8.7"), "\(text)")
        }
        await routes.cache.shutDown()
    }

    /// The fields and the policy may say that it is to be stored.
    @Test(
        arguments: [
            ["Cache-Control": "max-age=60"],
            ["Cache-Control": "max-age=60", "CDN-Cache-Control": "max-age=60"],
        ] as [HTTPHeaders],
        [true, false]
    )
    func aStreamedResponseBypassesTheCache(
        headers: HTTPHeaders,
        respectsDirectives: Bool
    ) async throws {
        let calls = Counter()
        var configuration = HTTPCache.Configuration()
        configuration.policy.respectsOriginDirectives = respectsDirectives
        configuration.policy.lifetimeOverride = respectsDirectives ? nil : .seconds(60)
        let route: @Sendable (Request) async throws -> Response = { _ in
            calls.add()
            return Response(
                headers: headers,
                body: .init(managedAsyncStream: { writer in
                    try await writer.writeBuffer(ByteBuffer(string: "ab"))
                    try await writer.writeBuffer(ByteBuffer(string: "cd"))
                })
            )
        }
        try await withRoute(route, configuration: configuration) { client, _ in
            for _ in 0..<2 {
                let response = try await client.sendRequest(.GET, "/news", headers: Self.host)
                #expect(String(buffer: response.body) == "abcd")
                #expect(response.headers.first(name: "Vary") == nil)
            }
        }
        #expect(calls.count == 2)
    }

    /// The response to a GET with content is for no other request.
    @Test func contentOfAGETReachesTheRoute() async throws {
        let calls = Counter()
        let route: @Sendable (Request) async throws -> Response = { request in
            calls.add()
            return Response(
                headers: ["Cache-Control": "max-age=60"],
                body: .init(string: request.body.string ?? "all")
            )
        }
        try await withRoute(route) { client, _ in
            for filter in [nil, "a", "b", nil] {
                let response = try await client.sendRequest(
                    .GET,
                    "/news",
                    headers: Self.host,
                    body: filter.map { ByteBuffer(string: $0) }
                )
                #expect(String(buffer: response.body) == filter ?? "all")
            }
        }
        #expect(calls.count == 3)
    }

    @Test func anErrorOfARouteIsItsResponse() async throws {
        let route: @Sendable (Request) async throws -> Response = { _ in throw Abort(.gone) }
        try await withRoute(route) { client, _ in
            let response = try await client.sendRequest(.GET, "/news", headers: Self.host)
            #expect(response.status == .gone)
        }
    }
}

private final class Counter: Sendable {
    private let value = Atomic(0)

    var count: Int { value.load(ordering: .relaxed) }

    func add() { value.add(1, ordering: .relaxed) }
}
