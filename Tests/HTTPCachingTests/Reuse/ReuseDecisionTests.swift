import Testing

@testable import HTTPCaching

@Suite("Reuse, RFC 9111 §4 and §5.2.1")
struct ReuseDecisionTests {
    /// A response with a lifetime of one minute.
    private static func minute(_ more: String = "", _ lines: Lines = []) -> Scene {
        Scene([("Cache-Control", more.isEmpty ? "max-age=60" : "max-age=60, \(more)")] + lines)
    }

    private static func asked(_ control: String) -> Lines { [("Cache-Control", control)] }

    @Test("§4.2: fresh until its lifetime is over")
    func freshUntilLifetime() {
        #expect(Self.minute().reuse(after: 0) == .serve(ageSeconds: 0))
        #expect(Self.minute().reuse(after: 59) == .serve(ageSeconds: 59))
        #expect(Self.minute().reuse(after: 60) == .revalidate)
        let aged = Self.minute("", [("Age", "30")])
        #expect(aged.reuse(after: 29) == .serve(ageSeconds: 59))
        #expect(aged.reuse(after: 30).verdict == "revalidate")
        let born = Self.minute("", [("Age", "61")])
        #expect(born.reuse(after: 0).verdict == "revalidate")
    }

    @Test("§5.2.2.4: no-cache is validated always, and never served stale")
    func noCacheValidatesAlways() {
        let scene = Self.minute("no-cache")
        #expect(scene.reuse(after: 0) == .revalidate)
        #expect(scene.reuse(after: 90) == .revalidate)
        let stale = scene.reuse(after: 90, request: Self.asked("max-stale"))
        #expect(stale == .revalidate)
        let qualified = Self.minute("no-cache=\"a\"")
        #expect(qualified.reuse(after: 0) == .serve(ageSeconds: 0))
    }

    @Test(
        "§5.2.2.2, §5.2.2.8, §5.2.2.10: must-revalidate and its kin are served fresh, never stale"
    )
    func mustRevalidate() {
        for directive in ["must-revalidate", "proxy-revalidate", "s-maxage=60"] {
            let scene = Self.minute(directive + ", stale-while-revalidate=99, stale-if-error=99")
            #expect(scene.reuse(after: 59) == .serve(ageSeconds: 59))
            #expect(scene.reuse(after: 60) == .revalidate)
            let lenient = scene.reuse(after: 60, request: Self.asked("max-stale=99"))
            #expect(lenient == .revalidate, "\(directive)")
        }
    }

    @Test("RFC 5861 §3: stale-while-revalidate opens when freshness ends")
    func staleWhileRevalidate() {
        let scene = Self.minute("stale-while-revalidate=10")
        #expect(scene.reuse(after: 59) == .serve(ageSeconds: 59))
        #expect(scene.reuse(after: 60) == .serveStaleThenRevalidate(ageSeconds: 60))
        #expect(scene.reuse(after: 69) == .serveStaleThenRevalidate(ageSeconds: 69))
        #expect(scene.reuse(after: 70).verdict == "revalidate")
        #expect(Self.minute("stale-while-revalidate=x").reuse(after: 60).verdict == "revalidate")
    }

    @Test("A cache may have a window of its own; the response's comes first")
    func ownStaleWindow() {
        var preferences = ReusePreferences()
        preferences.staleWhileRevalidateSeconds = 10
        func verdict(_ scene: Scene, _ age: Int64) -> String {
            scene.reuse(after: age, preferences: preferences).verdict
        }
        #expect(verdict(Self.minute(), 69) == "serveStaleThenRevalidate")
        #expect(verdict(Self.minute(), 70) == "revalidate")
        #expect(verdict(Self.minute("stale-while-revalidate=0"), 60) == "revalidate")
        #expect(verdict(Self.minute("must-revalidate"), 60) == "revalidate")
    }

    @Test(
        "§5.2.1: request directives",
        arguments: [
            Row("max-age: older than wanted", ("max-age=29", Int64(30)), "revalidate"),
            Row("max-age: as old as wanted", ("max-age=30", 30), "serve"),
            Row("max-age=0", ("max-age=0", 1), "revalidate"),
            Row("max-age no number", ("max-age=x", 1), "revalidate"),
            Row("max-age twice: the smaller", ("max-age=90, max-age=10", 30), "revalidate"),
            Row("max-age does not make stale fresh", ("max-age=90", 60), "revalidate"),
            Row("max-stale: any", ("max-stale", 999_999), "serveStale"),
            Row("max-stale: within", ("max-stale=10", 70), "serveStale"),
            Row("max-stale: beyond", ("max-stale=10", 71), "revalidate"),
            Row("max-stale no number grants nothing", ("max-stale=x", 61), "revalidate"),
            Row(
                "max-stale with max-age, both hold",
                ("max-stale=10, max-age=70", 70),
                "serveStale"
            ),
            Row("max-stale with max-age, too old", ("max-stale=10, max-age=65", 70), "revalidate"),
            Row("min-fresh: long enough", ("min-fresh=30", 30), "serve"),
            Row("min-fresh: too short", ("min-fresh=30", 31), "revalidate"),
            Row("min-fresh: more than its lifetime", ("min-fresh=90", 0), "revalidate"),
            Row("min-fresh no number is ignored", ("min-fresh=x", 59), "serve"),
            Row("no-cache", ("no-cache", 0), "revalidate"),
            Row("no-cache, any case", ("No-CacHe", 0), "revalidate"),
            Row("no-store", ("no-store", 0), "fetch"),
            Row("only-if-cached, fresh", ("only-if-cached", 0), "serve"),
            Row("only-if-cached, stale", ("only-if-cached", 60), "gatewayTimeout"),
            Row("only-if-cached, stale accepted", ("only-if-cached, max-stale", 60), "serveStale"),
            Row("only-if-cached and no-cache", ("only-if-cached, no-cache", 0), "gatewayTimeout"),
            Row("only-if-cached and no-store", ("only-if-cached, no-store", 0), "gatewayTimeout"),
            Row("unknown ones", ("foo, bar=\"no-cache\", no-transform", 0), "serve"),
        ] as [Row<(String, Int64), String>]
    )
    func requestDirectives(_ row: Row<(String, Int64), String>) {
        let decision = Self.minute().reuse(after: row.input.1, request: Self.asked(row.input.0))
        #expect(decision.verdict == row.expected)
    }

    @Test("A client that asks for freshness gets no stale response while it is renewed")
    func strictClientsGetNothingStale() {
        let scene = Self.minute("stale-while-revalidate=10")
        for control in ["max-age=99", "min-fresh=1", "no-cache"] {
            let decision = scene.reuse(after: 61, request: Self.asked(control))
            #expect(decision.verdict == "revalidate", "\(control)")
        }
    }

    @Test("§5.4: Pragma speaks only where Cache-Control is silent")
    func pragmaInARequest() {
        let pragma = ("Pragma", "no-cache")
        #expect(Self.minute().reuse(after: 0, request: [pragma]).verdict == "revalidate")
        let both: Lines = [pragma, ("Cache-Control", "max-age=60")]
        #expect(Self.minute().reuse(after: 0, request: both).verdict == "serve")
        #expect(Self.minute().reuse(after: 0, request: [("Pragma", "foo")]).verdict == "serve")
    }

    @Test("A cache may be deaf to its clients")
    func ignoredRequestDirectives() {
        let all = ["no-cache", "no-store", "max-age=0", "min-fresh=99", "only-if-cached, no-cache"]
        for control in all {
            let decision = Self.minute().reuse(
                after: 1,
                request: Self.asked(control),
                isDeaf: true
            )
            #expect(decision == .serve(ageSeconds: 1), "\(control)")
        }
        let stale = Self.minute().reuse(
            after: 61,
            request: Self.asked("max-stale, only-if-cached"),
            isDeaf: true
        )
        #expect(stale.verdict == "revalidate")
    }

    @Test("RFC 8246 §2: a plain reload does not ask for what is immutable and fresh")
    func immutable() {
        let scene = Self.minute("immutable")
        #expect(scene.reuse(after: 30, request: Self.asked("max-age=0")).verdict == "serve")
        #expect(scene.reuse(after: 30, request: Self.asked("no-cache")).verdict == "revalidate")
        #expect(scene.reuse(after: 30, request: Self.asked("max-age=5")).verdict == "revalidate")
        #expect(scene.reuse(after: 60, request: Self.asked("max-age=0")).verdict == "revalidate")
        let renewed = Self.minute("immutable, stale-while-revalidate=600")
        #expect(renewed.reuse(after: 30, request: Self.asked("max-age=0")).verdict == "serve")
        for control in ["max-age=0", "max-age=0, max-stale=99"] {
            let stale = renewed.reuse(after: 61, request: Self.asked(control))
            #expect(stale.verdict == "revalidate", "\(control)")
        }
    }

    @Test("Preference: validate always")
    func alwaysValidate() {
        var preferences = ReusePreferences()
        preferences.freshness = .alwaysValidate
        func decision(_ more: String, _ request: Lines = []) -> ReuseDecision {
            Self.minute(more).reuse(after: 0, request: request, preferences: preferences)
        }
        for more in ["", "immutable", "must-revalidate", "stale-if-error=60"] {
            #expect(decision(more) == .revalidate, "\(more)")
        }
        #expect(decision("", Self.asked("only-if-cached")) == .gatewayTimeout)
    }

    @Test("Preference: any age, with and without must-revalidate")
    func acceptAnyAge() {
        func decision(_ more: String, _ limit: ReusePreferences.StaleLimit) -> ReuseDecision {
            var preferences = ReusePreferences()
            preferences.freshness = .acceptAnyAge(limit)
            return Self.minute(more).reuse(after: 99, preferences: preferences)
        }
        #expect(decision("", .honourMustRevalidate) == .serveStale(ageSeconds: 99))
        #expect(decision("", .ignoreMustRevalidate) == .serveStale(ageSeconds: 99))
        for directive in ["must-revalidate", "no-cache"] {
            let strict = decision(directive, .honourMustRevalidate)
            #expect(strict == .revalidate)
            #expect(decision(directive, .ignoreMustRevalidate) == .serveStale(ageSeconds: 99))
        }
        var preferences = ReusePreferences()
        preferences.freshness = .acceptAnyAge(.honourMustRevalidate)
        #expect(Self.minute().reuse(after: 5, preferences: preferences) == .serve(ageSeconds: 5))
    }

    @Test("§5.2.1.7: nothing stored, and nothing may be asked for")
    func misses() {
        let plain = RequestFacts(method: .get)
        let cached = RequestFacts(method: .get, fields: FieldSection(Self.asked("only-if-cached")))
        #expect(ReuseDecision.decideMiss(request: plain) == .fetch)
        #expect(ReuseDecision.decideMiss(request: cached) == .gatewayTimeout)
        #expect(ReuseDecision.decideMiss(request: cached.withoutDirectives) == .fetch)
    }
}
