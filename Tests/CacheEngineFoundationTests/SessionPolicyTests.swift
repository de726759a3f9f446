import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Testing

/// The six request cache policies through a real URLSession.
@Suite(.timeLimit(.minutes(1))) struct SessionPolicyTests {
    /// One policy, the steps under it, and their expected results.
    struct Row: Sendable, CustomTestStringConvertible {
        let policy: URLRequest.CachePolicy
        let name: String
        let steps: [Step]

        var testDescription: String { name }
    }

    enum Step: Sendable {
        /// The resource changes at the origin.
        case change
        /// A load under the row's policy.
        case load(String, LoadFacts)
        /// A load under the default policy.
        case loadByDefault(String, LoadFacts)
    }

    private static func facts(_ body: String, _ requests: String...) -> LoadFacts {
        LoadFacts(body: body, requests: requests)
    }

    static let rows: [Row] = [
        Row(
            policy: .useProtocolCachePolicy,
            name: "P1 useProtocolCachePolicy",
            steps: [
                .load("/fresh", facts("\"v1\"", "GET")),
                .load("/fresh", facts("\"v1\"")),
                .load("/stale", facts("\"v1\"", "GET")),
                .load("/stale", facts("\"v1\"", "GET conditional")),
                .change,
                .load("/stale", facts("\"v2\"", "GET conditional")),
                .load("/fresh", facts("\"v1\"")),
            ]
        ),
        Row(
            policy: .reloadIgnoringLocalCacheData,
            name: "P2 reloadIgnoringLocalCacheData",
            steps: [
                .loadByDefault("/fresh", facts("\"v1\"", "GET")),
                .change,
                .load("/fresh", facts("\"v2\"", "GET")),
                .loadByDefault("/fresh", facts("\"v2\"")),
            ]
        ),
        Row(
            policy: .reloadIgnoringLocalAndRemoteCacheData,
            name: "P3 reloadIgnoringLocalAndRemoteCacheData",
            steps: [
                .loadByDefault("/fresh", facts("\"v1\"", "GET")),
                .change,
                .load("/fresh", facts("\"v2\"", "GET no-cache")),
                .loadByDefault("/fresh", facts("\"v2\"")),
            ]
        ),
        Row(
            policy: .returnCacheDataElseLoad,
            name: "P4 returnCacheDataElseLoad",
            steps: [
                .load("/stale", facts("\"v1\"", "GET")),
                .change,
                .load("/stale", facts("\"v1\"")),
                .load("/fresh", facts("\"v2\"", "GET")),
                .load("/fresh", facts("\"v2\"")),
            ]
        ),
        Row(
            policy: .returnCacheDataDontLoad,
            name: "P5 returnCacheDataDontLoad",
            steps: [
                .load("/stale", facts("failed")),
                .loadByDefault("/stale", facts("\"v1\"", "GET")),
                .change,
                .load("/stale", facts("\"v1\"")),
                .load("/fresh", facts("failed")),
            ]
        ),
        Row(
            policy: .reloadRevalidatingCacheData,
            name: "P6 reloadRevalidatingCacheData",
            steps: [
                .loadByDefault("/fresh", facts("\"v1\"", "GET")),
                .load("/fresh", facts("\"v1\"", "GET conditional")),
                .change,
                .load("/fresh", facts("\"v2\"", "GET conditional")),
                .loadByDefault("/fresh", facts("\"v2\"")),
            ]
        ),
    ]

    /// Returns the steps whose results differ from the row.
    private func misses(of row: Row, with cache: URLCache) async throws -> [String] {
        try await misses(of: row, in: URLSession.using(cache))
    }

    private func misses(of row: Row, in session: URLSession) async throws -> [String] {
        let origin = try PolicyOrigin()
        defer { session.invalidateAndCancel() }
        var misses: [String] = []
        for step in row.steps {
            switch step {
            case .change: origin.change()
            case .load(let path, let expected):
                let facts = await origin.load(path, row.policy, in: session)
                if facts != expected { misses.append("\(path): \(facts), not \(expected)") }
            case .loadByDefault(let path, let expected):
                let facts = await origin.load(path, .useProtocolCachePolicy, in: session)
                if facts != expected { misses.append("\(path): \(facts), not \(expected)") }
            }
        }
        return misses
    }

    @Test(arguments: rows)
    func engineHonoursThePolicy(row: Row) async throws {
        let cache = try await EngineURLCache.open(.ephemeral())
        let misses = try await misses(of: row, with: cache)
        #expect(misses.isEmpty, "\(misses)")
        await cache.cache.shutDown()
    }

    @Test(arguments: rows, [true, false])
    func protocolHonoursThePolicy(row: Row, hasDelegate: Bool) async throws {
        let session = try await URLSession.loading(
            delegate: hasDelegate ? RecordingDelegate() : nil
        )
        let misses = try await misses(of: row, in: session)
        #expect(misses.isEmpty, "\(misses)")
    }

    #if os(Linux)
        /// A failure shows that the platform's own cache now honours the policy.
        @Test(arguments: rows)
        func plainURLCacheDoesNotHonourThePolicy(row: Row) async throws {
            let folder = NSTemporaryDirectory() + "plain-urlcache-\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let plain = URLCache(
                memoryCapacity: 16 << 20,
                diskCapacity: 64 << 20,
                diskPath: folder
            )
            #expect(try await !misses(of: row, with: plain).isEmpty)
        }
    #endif
}
