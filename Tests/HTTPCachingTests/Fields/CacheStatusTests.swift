import Testing

@testable import HTTPCaching

@Suite("Cache-Status, RFC 9211")
struct CacheStatusTests {
    private static func status(
        _ outcome: CacheStatus.Outcome,
        _ change: (inout CacheStatus) -> Void = { _ in }
    ) -> String {
        var status = CacheStatus(outcome)
        change(&status)
        return status.text(of: "CacheEngine")
    }

    @Test("§2: a member and its parameters")
    func members() {
        #expect(Self.status(.hit) == "CacheEngine; hit")
        #expect(Self.status(.hit) { $0.ttlSeconds = 376 } == "CacheEngine; hit; ttl=376")
        #expect(Self.status(.hit) { $0.ttlSeconds = -412 } == "CacheEngine; hit; ttl=-412")
        let stored = Self.status(.forwarded(.uriMiss)) {
            $0.isStored = true
            $0.isCollapsed = true
        }
        #expect(stored == "CacheEngine; fwd=uri-miss; stored; collapsed")
        let stale = Self.status(.forwarded(.stale)) { $0.forwardStatus = 304 }
        #expect(stale == "CacheEngine; fwd=stale; fwd-status=304")
        let onlyWhenForwarded = Self.status(.hit) {
            $0.forwardStatus = 200
            $0.isStored = true
            $0.isCollapsed = true
        }
        #expect(onlyWhenForwarded == "CacheEngine; hit")
        let generated = Self.status(.generated(.onlyIfCached))
        #expect(generated == "CacheEngine; detail=only-if-cached")
    }

    @Test("§2.2: the reasons")
    func reasons() {
        let words = CacheStatus.Forward.allCases.map(\.rawValue)
        #expect(
            words == [
                "bypass", "method", "uri-miss", "vary-miss", "miss", "request", "stale", "partial",
            ]
        )
    }

    @Test("RFC 9651: what is no token is a string, and holds only what a string may")
    func texts() {
        func detail(_ text: String) -> String { Self.status(.hit) { $0.detail = text } }
        #expect(detail("response-no-store") == "CacheEngine; hit; detail=response-no-store")
        #expect(detail("two words") == "CacheEngine; hit; detail=\"two words\"")
        #expect(detail("a\"b\\c\r\n") == "CacheEngine; hit; detail=\"a\\\"b\\\\c??\"")
        #expect(detail("") == "CacheEngine; hit; detail=\"\"")
        let key = Self.status(.hit) { $0.key = "https://h/a" }
        #expect(key == "CacheEngine; hit; key=\"https://h/a\"")
        let hit = CacheStatus(.hit)
        #expect(hit.text(of: "cache.example.net:80") == "cache.example.net:80; hit")
        #expect(hit.text(of: "Node 7") == "\"Node 7\"; hit")
    }
}
