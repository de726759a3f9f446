import CacheEngine
import CacheTestSupport
import Testing

/// When a stored response replaces a failed load, and how the response reports it.
@Suite struct FailedLoadTests {
    static let validating: [CachePolicy] = [
        .revalidate, CachePolicy(.askServerIfModified),
    ]

    @Test("A policy that always validates gets the error, however fresh the stored response is")
    func validatingPolicyGetsTheError() async throws {
        for directives in ["max-age=60", "max-age=60, stale-if-error=1000"] {
            for ageSeconds in [0.0, 70] {
                for policy in Self.validating {
                    let stage = try await Stage(Resource(["Cache-Control": directives])) {
                        $0.caching.staleIfError = .seconds(1_000)
                    }
                    _ = try await stage.get()
                    stage.clock.advance(seconds: ageSeconds)
                    stage.origin.cutOff()
                    await #expect(throws: CacheError.self) { try await stage.get(policy: policy) }
                    stage.clock.advance(seconds: 2)
                    stage.origin.follow { _, _ in .whole(status: 503, body: "busy") }
                    #expect(try await stage.get(policy: policy).status == 503)
                    #expect(try await stage.holds())
                    await stage.end()
                }
            }
        }
    }

    @Test("With the fallback bit, a policy that always validates gets the stored response")
    func fallbackBitAllowsTheStoredResponse() async throws {
        let stage = try await Stage(Resource())
        _ = try await stage.get()
        stage.origin.cutOff()
        let policy = CachePolicy([.askServerIfModified, .fallbackToCacheIfLoadFails])
        #expect(try await stage.get(policy: policy).source == .fallback)
        await stage.end()
    }

    @Test("Cache-Status tells the failed attempt on a response that stands in for it")
    func fallbackNamesTheFailedAttempt() async throws {
        let stage = try await Stage(Resource(["Cache-Control": "max-age=60, stale-if-error=100"]))
        _ = try await stage.get()
        stage.clock.advance(seconds: 70)
        stage.origin.follow { _, _ in .whole(status: 503, body: "busy") }
        #expect(
            try await stage.get().fields["Cache-Status"]
                == "CacheEngine; fwd=stale; fwd-status=503; ttl=-10; detail=fallback"
        )
        stage.clock.advance(seconds: 5)
        stage.origin.cutOff()
        #expect(
            try await stage.get().fields["Cache-Status"]
                == "CacheEngine; fwd=stale; ttl=-15; detail=originFailed"
        )
        let fresh = try await Stage(Resource())
        _ = try await fresh.get()
        fresh.origin.cutOff()
        let answer = try await fresh.get(Stage.url, ["Cache-Control": "no-cache"])
        #expect(
            answer.fields["Cache-Status"]
                == "CacheEngine; fwd=request; ttl=60; detail=originFailed"
        )
        await fresh.end()
        await stage.end()
    }

    @Test("A response that stands in is stale only past its lifetime")
    func standInIsStaleOnlyPastItsLifetime() async throws {
        let stage = try await Stage(Resource(["Cache-Control": "max-age=60, stale-if-error=100"]))
        _ = try await stage.get()
        stage.origin.cutOff()
        for (waitSeconds, ageSeconds, isStale) in [
            (0.0, 0, false), (59.0, 59, false), (1.0, 60, true), (30.0, 90, true),
        ] {
            stage.clock.advance(seconds: waitSeconds)
            let answer = try await stage.get(Stage.url, ["Cache-Control": "no-cache"])
            #expect(answer.source == .fallback)
            #expect(answer.info.isStale == isStale, "\(ageSeconds) s")
            #expect(answer.info.remainingLifetime == .seconds(60 - ageSeconds))
        }
        await stage.end()
    }

    enum SoftPurge: CaseIterable { case byTag, byURL, ofVariants }

    @Test("A softly purged response stands in as a stale one", arguments: SoftPurge.allCases)
    func softPurgeEndsTheLifetimeOfAnErrorsStandIn(purge: SoftPurge) async throws {
        let fallbacks: [CachePolicy.Fallback] = [
            .whereAllowed, .always(statuses: [503], maximumStaleness: .seconds(2)),
        ]
        for fallback in fallbacks {
            var fields: HeaderFields = ["Cache-Control": "max-age=60", "Cache-Tag": "green"]
            if purge == .ofVariants { fields["Vary"] = "X-A" }
            let stage = try await Stage(Resource(fields))
            _ = try await stage.get()
            if purge == .byTag {
                try await stage.cache.markStale(tagged: "green")
            } else {
                _ = try await stage.cache.markStale(CacheRequest(url: Stage.url))
            }
            stage.clock.advance(seconds: 5)
            stage.origin.follow { _, _ in .whole(status: 503, body: "busy") }
            #expect(try await stage.get(policy: CachePolicy(fallback: fallback)).status == 503)
            #expect(try await stage.holds())
            await stage.end()
        }
    }

    @Test("A soft purge ends the lifetime of what stands in", arguments: [false, true])
    func softPurgedStandInIsStale(byTag: Bool) async throws {
        let fields: HeaderFields = [
            "Cache-Control": "max-age=60, stale-if-error=100", "Cache-Tag": "green",
        ]
        let stage = try await Stage(Resource(fields))
        _ = try await stage.get()
        if byTag {
            try await stage.cache.markStale(tagged: "green")
        } else {
            _ = try await stage.cache.markStale(CacheRequest(url: Stage.url))
        }
        stage.clock.advance(seconds: 5)
        stage.origin.cutOff()
        let answer = try await stage.get()
        #expect(answer.source == .fallback)
        #expect(answer.info.isStale)
        #expect(answer.info.remainingLifetime == .seconds(-5))
        await stage.end()
    }
}
