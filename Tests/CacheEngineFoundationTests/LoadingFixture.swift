import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Synchronization
import Testing

/// A session that loads through a cache with a test clock, and the origin behind it.
final class LoadingFixture: Sendable {
    let server: LoopbackServer
    let clock = TestClock()
    let cache: HTTPCache
    let session: URLSession
    private let version: Version

    private final class Version: Sendable {
        let number = Mutex(1)
        let status: Mutex<Int>

        init(status: Int) { self.status = Mutex(status) }
    }

    /// An origin whose body and entity tag are its version, with the given fields.
    init(
        _ fields: [(String, String)] = [("Cache-Control", "max-age=60")],
        status: Int = 200,
        delegate: (any URLSessionDelegate)? = nil,
        storing: CachingURLProtocol.Storing = .askingDelegate,
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws {
        let version = Version(status: status)
        self.version = version
        server = try LoopbackServer { request, connection in
            let text = "v\(version.number.withLock { $0 })"
            let tag = "\"\(text)\""
            if request["If-None-Match"] == tag {
                return connection.respond(304, fields + [("ETag", tag)])
            }
            connection.respond(version.status.withLock { $0 }, fields + [("ETag", tag)], body: text)
        }
        var configuration = HTTPCache.Configuration.ephemeral()
        configuration.clock = clock
        change(&configuration)
        cache = try await HTTPCache(configuration: configuration, origin: URLSessionOrigin())
        session = URLSession.loading(cache, storing: storing, delegate: delegate)
    }

    func changeResource(status: Int? = nil) {
        version.number.withLock { $0 += 1 }
        if let status { version.status.withLock { $0 = status } }
    }

    func request(
        _ path: String = "/",
        _ policy: URLRequest.CachePolicy = .useProtocolCachePolicy,
        _ fields: [String: String] = [:]
    ) throws -> URLRequest {
        var request = URLRequest(url: try #require(URL(string: server.baseURL + path)))
        request.cachePolicy = policy
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }

    /// Loads, and returns the body, the head, and the requests that it cost.
    @discardableResult
    func load(
        _ path: String = "/",
        _ policy: URLRequest.CachePolicy = .useProtocolCachePolicy,
        _ fields: [String: String] = [:]
    ) async throws -> (text: String, head: HTTPURLResponse, requests: Int) {
        let before = server.requestCount
        let (data, response) = try await session.data(for: request(path, policy, fields))
        return (
            String(decoding: data, as: UTF8.self), try #require(response as? HTTPURLResponse),
            server.requestCount - before
        )
    }

    /// The code of the error that a load ends with; `nil` if it succeeds.
    func failure(
        _ path: String = "/",
        _ policy: URLRequest.CachePolicy = .useProtocolCachePolicy
    ) async -> URLError.Code? {
        do {
            try await load(path, policy)
            return nil
        } catch {
            return (error as? URLError)?.code
        }
    }

    /// The façade that a program finds on its configuration.
    var facade: EngineURLCache {
        get throws { try #require(session.configuration.urlCache as? EngineURLCache) }
    }
}

extension LoopbackServer {
    /// A server that sets the cookie `id=7`, and confirms its response with the given cookie.
    static func confirming(changed: String?) throws -> LoopbackServer {
        try LoopbackServer { request, connection in
            let fields = [("Cache-Control", "max-age=0"), ("ETag", "\"1\"")]
            guard request["If-None-Match"] != nil else {
                return connection.respond(200, fields + [("Set-Cookie", "id=7")], body: "x")
            }
            connection.respond(304, fields + (changed.map { [("Set-Cookie", $0)] } ?? []))
        }
    }
}
