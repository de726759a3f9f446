import CacheEngine
import Foundation
import Testing

@testable import CacheProxy

/// The purge of everything, and the facts that the answer to a purge states.
@Suite struct PurgeAnswerTests {
    private static let token = "Authorization: Bearer \(AdminTests.token)"
    private static let everything = [token, "Purge-Everything: 1"]

    @Test func purgeOfEverythingRemovesAllThatIsStored() async throws {
        try await AdminTests.withAdmin { proxy, origin, port async throws in
            for target in ["/1", "/2"] { _ = try await proxy.request(target) }
            let answer = try await AdminTests.ask(port, "PURGE /", Self.everything)
            #expect(answer.status == 200)
            #expect(
                answer.text == "{\"removed\":2,\"everything\":true,\"tags\":0,\"soft\":false}\n"
            )
            for target in ["/1", "/2"] { #expect(try await !proxy.request(target).isHit) }
            #expect(origin.count == 4)
        }
    }

    @Test func softPurgeOfEverythingMakesAllStale() async throws {
        try await AdminTests.withAdmin { proxy, origin, port async throws in
            for target in ["/1", "/2"] { _ = try await proxy.request(target) }
            let fields = Self.everything + ["Soft-Purge: 1"]
            let answer = try await AdminTests.ask(port, "PURGE /", fields)
            #expect(answer.status == 200)
            #expect(
                answer.text == "{\"removed\":0,\"everything\":true,\"tags\":0,\"soft\":true}\n"
            )
            for target in ["/1", "/2"] { _ = try await proxy.request(target) }
            #expect(origin.count == 4)
            #expect(origin.requests.suffix(2).allSatisfy { $0["If-None-Match"] == "\"e\"" })
        }
    }

    /// The entries on disk go too: the proxy of the next start finds none.
    @Test func purgeOfEverythingEmptiesTheDisk() async throws {
        let folder = NSTemporaryDirectory() + "cache-proxy-disk-\(UUID().uuidString)"
        let token = try ConfigurationReaderTests.file(AdminTests.token + "\n")
        defer { for path in [folder, token] { ConfigurationReaderTests.remove(path) } }
        for isPurged in [true, false] {
            try await withProxy(
                { _, socket in try socket.answer(200, ["Cache-Control: max-age=60"], "x") },
                configure: {
                    $0.admin = .tcp(host: "127.0.0.1", port: 0)
                    $0.purgeTokenFile = token
                    $0.diskDirectory = folder
                    $0.diskSize = .megabytes(64)
                }
            ) { proxy, origin async throws in
                guard case .tcp(_, let port) = proxy.service.adminAddress else {
                    throw WireFailure("no admin")
                }
                _ = try await proxy.request("/1")
                #expect(origin.count == 1)
                guard isPurged else { return }
                let answer = try await AdminTests.ask(port, "PURGE /", Self.everything)
                #expect(answer.status == 200)
            }
        }
    }

    @Test(arguments: [
        "Purge-Everything: 0", "Purge-Everything:", "Purge-Everything: yes",
        "Purge-Everything: 1\r\nPurge-Everything: 1", "Purge-Everything: 1\r\nCache-Tag: t1",
        "Purge-Everything: 1\r\nSurrogate-Key: t1", "Purge-Everything: 1\r\nCache-Tag:",
    ])
    func unclearPurgeOfEverythingIsRefused(_ lines: String) async throws {
        try await AdminTests.withAdmin { proxy, _, port async throws in
            _ = try await proxy.request("/1")
            let answer = try await AdminTests.ask(port, "PURGE /1", [Self.token, lines])
            #expect(answer.status == 400)
            #expect(answer.text.hasPrefix("Purge-Everything"), "\(answer.text)")
            #expect(try await proxy.request("/1").isHit)
        }
    }

    @Test func purgeOfEverythingNeedsTheToken() async throws {
        try await AdminTests.withAdmin { proxy, _, port async throws in
            _ = try await proxy.request("/1")
            let fields = ["Purge-Everything: 1"]
            #expect(try await AdminTests.ask(port, "PURGE /", fields).status == 401)
            #expect(try await proxy.request("/1").isHit)
        }
    }

    /// The URL is that of the key: another host or scheme than that of the clients shows in it.
    @Test(arguments: [
        ("/1", "example.test", "http://example.test/1", 1),
        ("/1", "Example.TEST:80", "http://example.test/1", 1),
        ("/1", "other.test", "http://other.test/1", 0),
        ("/1", "example.test:8080", "http://example.test:8080/1", 0),
        ("https://example.test:443/1", "x", "https://example.test/1", 0),
        ("/1?a=\"\\%22", "example.test", "http://example.test/1?a=\"\\%22", 0),
    ])
    func purgeByURLNamesItsURL(
        _ row: (target: String, host: String, url: String, removed: Int)
    ) async throws {
        try await AdminTests.withAdmin { proxy, _, port async throws in
            _ = try await proxy.request("/1")
            let answer = try await WireClient(port).exchange(
                "PURGE \(row.target) HTTP/1.1\r\nHost: \(row.host)\r\n\(Self.token)\r\n\r\n"
            )
            #expect(answer.status == 200)
            let content = try Self.content(answer)
            #expect(content["url"] as? String == row.url, "\(answer.text)")
            #expect(content["removed"] as? Int == row.removed)
        }
    }

    @Test func purgeByTagNamesNoURL() async throws {
        try await AdminTests.withAdmin { _, _, port async throws in
            let fields = [Self.token, "Cache-Tag: t1"]
            let answer = try await AdminTests.ask(port, "PURGE /1", fields)
            #expect(answer.text == "{\"removed\":0,\"tags\":1,\"soft\":false}\n")
        }
    }

    private static func content(_ answer: WireResponse) throws -> [String: Any] {
        let content = try JSONSerialization.jsonObject(with: Data(answer.text.utf8))
        return try #require(content as? [String: Any])
    }
}
