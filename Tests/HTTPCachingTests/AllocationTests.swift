import CAllocationCounter
import Testing

@testable import HTTPCaching

@Suite("Allocations")
struct AllocationTests {
    private static let request = FieldSection([
        ("Host", "www.example.org"),
        ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
        ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
        ("Accept-Language", "de,en-US;q=0.7,en;q=0.3"),
        ("Accept-Encoding", "gzip, deflate, br, zstd"),
        ("Referer", "https://www.example.org/index.html"),
        ("Cookie", "session=31d4d96e407aad42; theme=dark"),
        ("Upgrade-Insecure-Requests", "1"),
        ("Sec-Fetch-Mode", "navigate"),
        ("If-None-Match", "\"33a64df551425fcc55e4d42a148795d9f25f89d4\""),
        ("Cache-Control", "max-age=0, stale-if-error=60"),
        ("Priority", "u=0, i"),
    ])

    private static let response = FieldSection([
        ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("Server", "Apache/2.4.62 (Debian)"),
        ("Last-Modified", "Sat, 05 Nov 1994 08:49:37 GMT"),
        ("ETag", "\"33a64df551425fcc55e4d42a148795d9f25f89d4\""),
        ("Accept-Ranges", "bytes"),
        ("Content-Length", "48410"),
        ("Cache-Control", "public, max-age=3600, s-maxage=\"600\", stale-while-revalidate=30"),
        ("CDN-Cache-Control", "max-age=7200, stale-if-error=600"),
        ("Expires", "Sunday, 06-Nov-94 09:49:37 GMT"),
        ("Vary", "Accept-Encoding, Accept-Language"),
        ("Age", "30"),
        ("Content-Type", "text/html; charset=utf-8"),
    ])

    /// The allocations of one run of `body`, after two runs that make the one-time allocations.
    private func allocations(of body: () -> Void) -> Int64 {
        body()
        body()
        let before = ce_allocation_count()
        body()
        return ce_allocation_count() - before
    }

    @Test func theCounterCounts() throws {
        try #require(ce_allocation_counting_is_available() == 1)
        var kept: [[UInt8]] = []
        kept.reserveCapacity(8)
        let before = ce_allocation_count()
        kept.append([UInt8](repeating: 1, count: 100))
        #expect(ce_allocation_count() - before >= 1)
        #expect(kept.count == 1)
    }

    @Test func requestFactsAreReadWithoutAllocating() {
        var facts = RequestFacts(method: .get)
        let count = allocations { facts = RequestFacts(method: .get, fields: Self.request) }
        #expect(count == 0)
        #expect(facts.maxAgeSeconds == 0)
        #expect(facts.flags.contains(.hasIfNoneMatch))
    }

    @Test func responseFactsAreReadWithoutAllocating() {
        let rules = StoringRules.shared
        var facts: ResponseFacts?
        let count = allocations {
            facts = ResponseFacts(
                status: 200,
                fields: Self.response,
                rules: rules,
                receivedAtSeconds: 784_111_777
            )
        }
        #expect(count == 0)
        #expect(facts?.directives.maxAgeSeconds == 7_200)
        #expect(facts?.ageSeconds == 30)
        #expect(facts?.expiresSeconds == 784_115_377)
    }

    @Test func storingAndReuseAreDecidedWithoutAllocating() {
        let rules = StoringRules.shared
        let request = RequestFacts(method: .get)
        let response = ResponseFacts(
            status: 200,
            fields: Self.response,
            rules: rules,
            receivedAtSeconds: 784_111_777
        )
        var reuse = ReuseDecision.fetch
        var stored: StoredFacts?
        let count = allocations {
            let decision = StoreDecision.decide(
                request: request,
                response: response,
                rules: rules,
                receivedAtSeconds: 784_111_777
            )
            guard case .store(let lifetime) = decision else { return }
            let facts = StoredFacts(
                response: response,
                lifetime: lifetime,
                rules: rules,
                requestTimeSeconds: 784_111_776,
                responseTimeSeconds: 784_111_777
            )
            stored = facts
            reuse = ReuseDecision.decide(
                stored: facts,
                request: request,
                nowSeconds: 784_111_787,
                preferences: ReusePreferences()
            )
        }
        #expect(count == 0)
        #expect(stored?.freshnessLifetimeSeconds == 7_200)
        #expect(reuse == .serve(ageSeconds: 41))
    }

    @Test func variantKeysAreWrittenWithoutAllocating() throws {
        let vary = try #require(Vary(["accept-encoding", "accept-language", "cookie", "x-none"]))
        var folding = VariantRules()
        folding.overrides["accept-encoding"] = .best(of: ["br", "gzip"])
        for rules in [VariantRules.standard, folding] {
            var bytes: [UInt8] = []
            bytes.reserveCapacity(512)
            let count = allocations {
                bytes.removeAll(keepingCapacity: true)
                VariantKey.append(vary, request: Self.request, rules: rules, to: &bytes)
            }
            #expect(count == 0)
            #expect(bytes.count > 100)
        }
    }

    @Test func lookingUpAFieldDoesNotAllocate() {
        var isFound = false
        let count = allocations {
            isFound = Self.response.contains(lowercased: "vary") && Self.response.contains("ETag")
        }
        #expect(isFound)
        #expect(count == 0)
    }

    @Test func datesAreWrittenWithoutAllocating() {
        var text: [UInt8] = Array(repeating: 0, count: HTTPDate.formattedBytes)
        let count = allocations {
            text.withUnsafeMutableBytes { HTTPDate.format(784_111_777, into: $0) }
        }
        #expect(count == 0)
        #expect(String(decoding: text, as: UTF8.self) == "Sun, 06 Nov 1994 08:49:37 GMT")
    }
}
