import CacheTestSupport
import Foundation
import FoundationNetworking
import Synchronization

/// An origin that records its requests, and whose resources change on demand.
final class PolicyOrigin: Sendable {
    let server: LoopbackServer
    private let version: Version

    private final class Version: Sendable {
        let number = Mutex(1)
    }

    /// `/fresh` has a lifetime of an hour, `/stale` of zero; both have an entity tag.
    init() throws {
        let version = Version()
        self.version = version
        server = try LoopbackServer { request, connection in
            let tag = "\"v\(version.number.withLock { $0 })\""
            let lifetime = request.path == "/stale" ? 0 : 3600
            let fields = [("ETag", tag), ("Cache-Control", "max-age=\(lifetime)")]
            if request["If-None-Match"] == tag { return connection.respond(304, fields) }
            connection.respond(200, fields, body: tag)
        }
    }

    func change() { version.number.withLock { $0 += 1 } }
}

/// The result of one load: the body or the failure, and the origin requests it caused.
struct LoadFacts: Equatable, CustomStringConvertible {
    var body: String
    var requests: [String]

    var description: String { "\(body) after \(requests)" }
}

extension PolicyOrigin {
    func load(
        _ path: String,
        _ policy: URLRequest.CachePolicy,
        in session: URLSession
    ) async -> LoadFacts {
        let before = server.requests.count
        var request = URLRequest(url: URL(string: server.baseURL + path) ?? URL(filePath: "/"))
        request.cachePolicy = policy
        var body = "failed"
        if let (data, _) = try? await session.data(for: request) {
            body = String(decoding: data, as: UTF8.self)
        }
        let requests = server.requests.dropFirst(before).map { request in
            var words = [request.method]
            if request["If-None-Match"] != nil { words.append("conditional") }
            if request["Cache-Control"] == "no-cache", request["Pragma"] == "no-cache" {
                words.append("no-cache")
            }
            return words.joined(separator: " ")
        }
        return LoadFacts(body: body, requests: requests)
    }
}

extension URLSession {
    static func using(_ cache: URLCache?) -> URLSession {
        let configuration = URLSessionConfiguration.default
        configuration.urlCache = cache
        return URLSession(configuration: configuration)
    }
}
