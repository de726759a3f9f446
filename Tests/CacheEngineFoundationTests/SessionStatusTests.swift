import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Testing

/// The origin requests of one task: a plain session, the drop-in, and the protocol.
@Suite(.serialized, .timeLimit(.minutes(2))) struct SessionStatusTests {
    static let statuses = [
        200, 201, 202, 203, 204, 206, 300, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405,
        406, 408, 409, 410, 414, 418, 429, 500, 501, 502, 503, 504,
    ]

    enum Kind: String, CaseIterable, Sendable {
        case data, download, upload
    }

    /// The result of one task.
    struct Facts: Equatable {
        var status: Int
        var body: String
        var requests: Int
    }

    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer { request, connection in
            let status = Int(request.path.dropFirst()) ?? 0
            connection.respond(status, [("Content-Type", "text/plain")], body: "status \(status)")
        }
    }

    private func load(_ status: Int, _ kind: Kind, in session: URLSession) async throws -> Facts {
        let before = server.requestCount
        let url = try #require(URL(string: "\(server.baseURL)/\(status)?\(UUID().uuidString)"))
        var request = URLRequest(url: url)
        // A 304 answers a condition, and no other request.
        if status == 304 { request.setValue("\"1\"", forHTTPHeaderField: "If-None-Match") }
        let body: Data
        let response: URLResponse
        switch kind {
        case .data: (body, response) = try await session.data(for: request)
        case .download:
            let file: URL
            (file, response) = try await session.download(for: request)
            body = try Data(contentsOf: file)
            try FileManager.default.removeItem(at: file)
        case .upload:
            request.httpMethod = "POST"
            (body, response) = try await session.upload(for: request, from: Data("content".utf8))
        }
        let head = try #require(response as? HTTPURLResponse)
        return Facts(
            status: head.statusCode,
            body: String(decoding: body, as: UTF8.self),
            requests: server.requestCount - before
        )
    }

    @Test func protocolAsksTheOriginAsOftenAsAPlainSession() async throws {
        let plain = URLSession.using(nil)
        let dropIn = URLSession.using(try await EngineURLCache.open(.ephemeral()))
        let loading = try await URLSession.loading()
        var lines = [
            "status | plain: data download upload | drop-in: data download upload "
                + "| protocol: data download upload"
        ]
        for status in Self.statuses {
            var counts: [[Int]] = []
            for session in [plain, dropIn, loading] {
                var row: [Int] = []
                for kind in Kind.allCases {
                    let facts = try await load(status, kind, in: session)
                    #expect(facts.status == status, "\(kind)")
                    row.append(facts.requests)
                }
                counts.append(row)
            }
            let cells = counts.map { row in row.map(String.init).joined(separator: " ") }
            lines.append("\(status) | " + cells.joined(separator: " | "))
            #expect(counts[2] == counts[0], "\(status)")
            #expect(counts[2] == [1, 1, 1], "\(status)")
        }
        print(lines.joined(separator: "\n"))
    }

    @Test(arguments: Kind.allCases)
    func responseIsThatOfAPlainSession(kind: Kind) async throws {
        let plain = URLSession.using(nil)
        let loading = try await URLSession.loading()
        for status in Self.statuses {
            let expected = try await load(status, kind, in: plain)
            #expect(try await load(status, kind, in: loading) == expected, "\(status)")
        }
    }

    /// Overloaded and refusing origins get twice the requests from a session with the drop-in.
    @Test func dropInAsksTwiceForSomeStatuses() async throws {
        let session = URLSession.using(try await EngineURLCache.open(.ephemeral()))
        for status in [201, 400, 401, 403, 429, 500, 503] {
            #expect(try await load(status, .data, in: session).requests == 2, "\(status)")
        }
    }
}

extension URLSession {
    /// A session that loads through a new private cache in memory.
    static func loading(
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in },
        storing: CachingURLProtocol.Storing = .askingDelegate,
        delegate: (any URLSessionDelegate)? = nil
    ) async throws -> URLSession {
        var configuration = HTTPCache.Configuration.ephemeral()
        change(&configuration)
        let cache = try await HTTPCache(configuration: configuration, origin: URLSessionOrigin())
        return loading(cache, storing: storing, delegate: delegate)
    }

    /// A session that loads through `cache`.
    static func loading(
        _ cache: HTTPCache,
        storing: CachingURLProtocol.Storing = .askingDelegate,
        delegate: (any URLSessionDelegate)? = nil
    ) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.load(through: cache, storing: storing)
        return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }
}
