import CacheTestSupport
import Testing

@testable import HTTPCaching

/// Compares the shortcut for plain hits, which reads few facts, with the full rules.
@Suite struct PlainHitRulesTests {
    private static let numbers: [UInt32] = [0, 1, 59, 60, 61, 3_600, DeltaSeconds.maximum]
    private static let times: [Int64] = [.min, -1, 0, 1_000, 1_059, 1_060, 1_061, .max]

    private static func facts(_ random: inout SeededRandom) -> StoredFacts {
        func number() -> UInt32 { numbers.randomElement(using: &random) ?? 0 }
        return StoredFacts(
            status: 200,
            flags: StoredFacts.Flags(rawValue: UInt32.random(in: 0..<1 << 17, using: &random)),
            responseTimeSeconds: times.randomElement(using: &random) ?? 0,
            correctedInitialAgeSeconds: number(),
            freshnessLifetimeSeconds: number(),
            staleWhileRevalidateSeconds: number(),
            staleIfErrorSeconds: number(),
            dateSeconds: 0,
            lastModifiedSeconds: nil
        )
    }

    @Test("a plain request is given what the rules say, or they are asked")
    func freshFactsAnticipateTheDecision() {
        var random = SeededRandom(seed: 3)
        var preferences = ReusePreferences()
        var hits = 0
        for round in 0..<50_000 {
            let facts = Self.facts(&random)
            let now = Self.times.randomElement(using: &random) ?? 0
            preferences.freshness =
                round % 2 == 0 ? .respect : .acceptAnyAge(.honourMustRevalidate)
            let decision = ReuseDecision.decide(
                stored: facts,
                request: RequestFacts(method: .get),
                nowSeconds: now,
                preferences: preferences
            )
            var bytes = [UInt8](repeating: 0, count: StoredFacts.encodedBytes)
            bytes.withUnsafeMutableBytes { facts.encode(into: $0) }
            let fresh = bytes.withUnsafeBytes { StoredFacts.Fresh($0, nowSeconds: now) }
            if let fresh {
                hits += 1
                #expect(decision == .serve(ageSeconds: fresh.ageSeconds))
                #expect(fresh.lifetimeSeconds == Int(facts.freshnessLifetimeSeconds))
                #expect(fresh.status == facts.status)
            } else if case .serve = decision {
                #expect(facts.flags.contains(.isPartial), "A whole response was left to the rules")
            }
        }
        #expect(hits > 1_000)
    }

    @Test("a field that may change the answer to a hit is a condition, in whatever case")
    func fieldsThatMayChangeAHitAreConditions() {
        let others = [
            ("Range", "bytes=0-1"), ("Pragma", "no-cache"), ("If-Match", "*"),
            ("If-Range", "\"1\""), ("Cache-Control", "no-cache"), ("If-Modified-Since", "x"),
            ("If-Unmodified-Since", "x"),
        ]
        let silent = [
            ("Accept", "*/*"), ("Accept-Encoding", "gzip"), ("User-Agent", "x"), ("Host", "h"),
            ("X", ""), ("Rangy", "1"), ("Cookiez", "1"), ("Action", "1"), ("Prefer", "a"),
            ("Cookie", "a=b"), ("Authorization", "x"),
        ]
        func condition(_ added: [(String, String)]) -> RequestFacts.HitCondition {
            RequestFacts.hitCondition(of: FieldSection(silent + added))
        }
        #expect(RequestFacts.hitCondition(of: FieldSection()) == .none)
        #expect(condition([]) == .none)
        for (name, value) in others {
            for name in [name, name.lowercased(), name.uppercased()] {
                #expect(condition([(name, value)]) == .other)
            }
        }
        for name in ["If-None-Match", "if-none-match", "IF-NONE-MATCH"] {
            #expect(condition([(name, "*")]) == .ifNoneMatch)
            for (other, value) in others {
                let expected =
                    other == "If-Modified-Since" ? .ifNoneMatch : RequestFacts.HitCondition.other
                #expect(condition([(name, "*"), (other, value)]) == expected)
                #expect(condition([(other, value), (name, "*")]) == expected)
            }
        }
    }
}
