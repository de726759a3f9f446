import Testing

@testable import HTTPCaching

/// RFC 9111 §3, with one table for each condition.
@Suite("Storing, RFC 9111 §3")
struct StoreDecisionTests {
    private static let fresh: Lines = [("Cache-Control", "max-age=60")]
    private static let validator: (String, String) = ("ETag", "\"a\"")

    @Test("§3 condition 1: the method is understood")
    func methodIsUnderstood() {
        for method in MethodKind.allCases {
            let decision = Scene(Self.fresh, method: method).decision
            let isStored = method == .get || method == .head
            #expect(decision.refusal == (isStored ? nil : .methodNotStored), "\(method)")
        }
    }

    @Test("RFC 9110 §9.3.3: an answer to POST needs explicit freshness")
    func postNeedsExplicitFreshness() {
        var rules = StoringRules.private
        rules.storesPost = true
        let fresh = Scene(Self.fresh, method: .post, rules: rules)
        #expect(fresh.decision.lifetime?.seconds == 60)
        let guessed = Scene([("Last-Modified", Scene.date(-1_000))], method: .post, rules: rules)
        #expect(guessed.decision.refusal == .notFreshNorCacheable)
        let marked = Scene([("Cache-Control", "public")], method: .post, rules: rules)
        #expect(marked.decision.refusal == .notFreshNorCacheable)
        rules.statusLifetimes = [.init(status: 200, seconds: 60)]
        let ofStatus = Scene([Self.validator], method: .post, rules: rules)
        #expect(ofStatus.decision.refusal == .notFreshNorCacheable)
        #expect(Scene(Self.fresh, method: .post, rules: rules).decision.lifetime?.seconds == 60)
        #expect(Scene([Self.validator], rules: rules).decision.lifetime?.seconds == 60)
    }

    @Test("§3 condition 2: the status is final")
    func statusIsFinal() {
        for status in [100, 101, 102, 103, 199] {
            #expect(Scene(Self.fresh, status: status).decision.refusal == .interimResponse)
        }
        for status in [0, 99, 1_000, -1] {
            #expect(Scene(Self.fresh, status: status).decision.refusal == .statusNeverStored)
        }
    }

    @Test("§3 condition 3: 206, 304 and must-understand ask for a status that is understood")
    func statusIsUnderstood() {
        #expect(Scene(Self.fresh, status: 304).decision.refusal == .statusNeverStored)
        let must: Lines = [("Cache-Control", "max-age=60, must-understand")]
        #expect(Scene(must, status: 599).decision.refusal == .statusNotUnderstood)
        #expect(Scene(must, status: 299).decision.refusal == .statusNotUnderstood)
        #expect(Scene(must, status: 200).decision.lifetime?.seconds == 60)
        #expect(Scene(must, status: 404).decision.lifetime?.seconds == 60)
    }

    @Test("§3: a status that is not understood is stored when explicitly fresh")
    func unknownStatusIsStored() {
        for status in [299, 499, 599, 999] {
            #expect(Scene(Self.fresh, status: status).decision.lifetime?.seconds == 60)
        }
    }

    @Test("§3 condition 4: no-store")
    func noStoreIsNotStored() {
        let row: Lines = [("Cache-Control", "max-age=60, No-StOrE"), Self.validator]
        #expect(Scene(row).decision.refusal == .responseNoStore)
        #expect(Scene(row, rules: .private).decision.refusal == .responseNoStore)
    }

    @Test("§5.2.2.3: must-understand with a known status sets no-store aside")
    func mustUnderstandBeatsNoStore() {
        let row: Lines = [("Cache-Control", "max-age=60, no-store, must-understand")]
        #expect(Scene(row).decision.lifetime?.seconds == 60)
        #expect(Scene(row, status: 599).decision.refusal == .statusNotUnderstood)
    }

    @Test("§5.2.1.5: a request's no-store")
    func requestNoStoreIsNotStored() {
        let request: Lines = [("Cache-Control", "no-store")]
        #expect(Scene(Self.fresh, request: request).decision.refusal == .requestNoStore)
    }

    @Test("§3 condition 5: private, in a shared cache")
    func privateIsNotStoredByASharedCache() {
        let row: Lines = [("Cache-Control", "private, max-age=60")]
        #expect(Scene(row).decision.refusal == .responsePrivate)
        #expect(Scene(row, rules: .private).decision.lifetime?.seconds == 60)
        let qualified: Lines = [("Cache-Control", "private=\"set-cookie\", max-age=60")]
        #expect(Scene(qualified).decision.lifetime?.seconds == 60)
        let both: Lines = [("Cache-Control", "private=\"set-cookie\", private, max-age=60")]
        #expect(Scene(both).decision.refusal == .responsePrivate)
        let faulty: Lines = [("Cache-Control", "private=\"a b;\", max-age=60")]
        #expect(Scene(faulty).decision.refusal == .responsePrivate)
    }

    @Test("§3 condition 6 and §3.5: Authorization, in a shared cache")
    func authorizedNeedsPermission() {
        let request: Lines = [("Authorization", "Basic Zm9vOmJhcg==")]
        func refusal(_ control: String, _ rules: StoringRules = .shared) -> StoreRefusal? {
            Scene([("Cache-Control", control)], request: request, rules: rules).decision.refusal
        }
        #expect(refusal("max-age=60") == .requestAuthorized)
        #expect(refusal("max-age=60, proxy-revalidate") == .requestAuthorized)
        #expect(refusal("max-age=60, public") == nil)
        #expect(refusal("max-age=60, must-revalidate") == nil)
        #expect(refusal("s-maxage=60") == nil)
        #expect(refusal("max-age=60", .private) == nil)
        let targeted: Lines = [
            ("Cache-Control", "public"), ("CDN-Cache-Control", "max-age=60"),
        ]
        #expect(Scene(targeted, request: request).decision.refusal == .requestAuthorized)
    }

    @Test("§3 condition 7: some ground to store")
    func storingNeedsAnAllowingFieldOrStatus() {
        func stored(_ lines: Lines, _ status: Int = 302, _ rules: StoringRules = .shared) -> Bool {
            Scene(lines + [Self.validator], status: status, rules: rules).decision.refusal == nil
        }
        #expect(!stored([]))
        #expect(stored([("Cache-Control", "public")]))
        #expect(stored([("Cache-Control", "private")], 302, .private))
        #expect(stored([("Expires", Scene.date(60))]))
        #expect(stored([("Expires", "0")]))
        #expect(stored([("Cache-Control", "max-age=0")]))
        #expect(stored([("Cache-Control", "s-maxage=0")]))
        #expect(!stored([("Cache-Control", "s-maxage=60")], 302, .private))
        #expect(!stored([("Cache-Control", "extension=60")]))
        for status in 200...599 {
            let isCacheable = StatusFacts(status).isHeuristicallyCacheable
            guard isCacheable, ![206, 405, 501].contains(status) else { continue }
            #expect(stored([], status), "\(status)")
        }
    }

    @Test("RFC 6585 and RFC 9110: answers to one request are stored for nobody")
    func someStatusesAreNeverStored() {
        for status in [304, 407, 412, 416, 425, 428, 429, 431, 511] {
            let decision = Scene(Self.fresh, status: status).decision
            #expect(decision.refusal == .statusNeverStored, "\(status)")
        }
    }

    @Test("Refusals that a crafted request provokes are stored only when explicitly fresh")
    func provokedRefusalsNeedExplicitFreshness() {
        let guessed: Lines = [("Last-Modified", Scene.date(-86_400)), Self.validator]
        for status in [400, 403, 405, 413, 501] {
            #expect(
                Scene(guessed, status: status).decision.refusal == .provokedRefusal,
                "\(status)"
            )
            #expect(Scene(Self.fresh, status: status).decision.refusal == nil, "\(status)")
        }
    }

    /// The settings that keep responses for longer than they say, or without any use.
    private static let keepers: [StoringRules] = [StoringRules.shared, .private].flatMap { rules in
        var unusable = rules
        unusable.unusable = .store
        var overriding = unusable
        overriding.lifetimeOverrideSeconds = 1_000
        var atLeast = unusable
        atLeast.lifetimeSecondsMin = 1_000
        var deaf = overriding
        deaf.originDirectives = .ignore
        return [rules, unusable, overriding, atLeast, deaf]
    }

    @Test("an error that passes is stored only for the time that it states, whatever is set")
    func passingErrorsNeedTimeOfTheirOwn() {
        let timeless: [Lines] = [
            [], [("Cache-Control", "max-age=0")], [("Cache-Control", "private")],
            [("Cache-Control", "public")], [("Cache-Control", "private, max-age=0")],
            [("Expires", "0")], [("Cache-Control", "max-age=0, stale-while-revalidate=9")],
            [("Last-Modified", Scene.date(0))],
        ]
        let passing = [400, 401, 402, 403, 405, 408, 413, 415, 500, 501, 502, 503, 504, 599]
        for rules in Self.keepers {
            for status in passing {
                for lines in timeless {
                    let scene = Scene(lines + [Self.validator], status: status, rules: rules)
                    #expect(scene.decision.refusal != nil, "\(status) \(lines) \(rules)")
                }
                let timed = Scene(Self.fresh, status: status, rules: rules).decision
                #expect(timed.lifetime?.seconds == 60, "\(status) \(rules)")
                var byStatus = rules
                byStatus.statusLifetimes = [.init(status: status, seconds: 5)]
                let lifetime = Scene([], status: status, rules: byStatus).decision.lifetime
                #expect(lifetime?.seconds == 5, "\(status) \(rules)")
            }
        }
    }

    @Test("a lifetime of the cache's own holds for content, redirects and what is gone")
    func ownLifetimeIsForLastingResponses() {
        for rules in Self.keepers where rules.lifetimeOverrideSeconds != nil {
            for status in [200, 203, 204, 299, 300, 301, 302, 303, 307, 308, 404, 410] {
                for lines in [[], Self.fresh, [("Cache-Control", "max-age=0")]] {
                    let lifetime = Scene(lines, status: status, rules: rules).decision.lifetime
                    let expected = FreshnessLifetime(seconds: 1_000, source: .override)
                    #expect(lifetime == expected, "\(status) \(lines)")
                }
            }
        }
    }

    @Test("§4.1: what varies on everything, or on too much, is not stored")
    func varyIsBounded() {
        for value in ["*", "*, *", ", *", "Foo, *", "*, Foo", "a b"] {
            let row = Self.fresh + [("Vary", value)]
            #expect(Scene(row).decision.refusal == .varyOnEverything, "\(value)")
        }
        let names = (0..<17).map { "f\($0)" }.joined(separator: ", ")
        #expect(Scene(Self.fresh + [("Vary", names)]).decision.refusal == .varyTooLong)
        #expect(Scene(Self.fresh + [("Vary", "a, b"), ("Vary", "c")]).decision.refusal == nil)
    }

    @Test("§3.3: a part needs a Range that asked for it, and a Content-Range")
    func partsAreStoredWhereTheirPlaceIsKnown() {
        func refusal(_ lines: Lines, range: String? = "bytes=0-4") -> StoreRefusal? {
            let request = range.map { [("Range", $0)] } ?? []
            return Scene(Self.fresh + lines, status: 206, request: request).decision.refusal
        }
        let content = ("Content-Range", "bytes 0-4/10")
        #expect(refusal([content, Self.validator]) == nil)
        #expect(refusal([content, Self.validator], range: nil) == .partialUnrequested)
        #expect(refusal([Self.validator]) == .partialWithoutContentRange)
        let faulty = ("Content-Range", "bytes 5-4/10")
        #expect(refusal([faulty, Self.validator]) == .partialWithoutContentRange)
        #expect(refusal([content, ("ETag", "W/\"a\"")]) == nil)
        #expect(refusal([content]) == nil)
        #expect(refusal([content, ("Last-Modified", Scene.date(0))]) == nil)
    }

    @Test("A whole answer to a request with Range is stored as such")
    func wholeAnswerToARangeIsStored() {
        let scene = Scene(Self.fresh, request: [("Range", "bytes=0-4")])
        #expect(scene.decision.lifetime?.seconds == 60)
    }

    @Test("RFC 9112 §6.3: a body whose end is not known is not stored")
    func ambiguousLengthIsNotStored() {
        for value in ["5, 6", "-5", "+5", "5 6", "0x5", "5.0", "", "99999999999999999999"] {
            let row = Self.fresh + [("Content-Length", value)]
            #expect(Scene(row).decision.refusal == .ambiguousLength, "\(value)")
        }
        let twice = Self.fresh + [("Content-Length", "5"), ("Content-Length", "6")]
        #expect(Scene(twice).decision.refusal == .ambiguousLength)
        let same = Self.fresh + [("Content-Length", "5, 5"), ("Content-Length", "5")]
        #expect(Scene(same).decision.refusal == nil)
        #expect(Scene(same).response.contentLength == 5)
    }

    @Test("What can be neither reused nor validated is refused where it is of no use")
    func unusableIsRefused() {
        #expect(Scene([]).decision.refusal == .neitherFreshNorValidatable)
        #expect(
            Scene([], rules: .private).decision.lifetime?.source == FreshnessLifetime.Source.none
        )
        #expect(Scene([Self.validator]).decision.refusal == nil)
        #expect(Scene([("Cache-Control", "max-age=0, stale-if-error=9")]).decision.refusal == nil)
        let stale: Lines = [("Cache-Control", "max-age=0, stale-while-revalidate=9")]
        #expect(Scene(stale).decision.refusal == nil)
        #expect(
            Scene([("Cache-Control", "max-age=0")]).decision.refusal == .neitherFreshNorValidatable
        )
    }

    /// The usual settings, and two by which a response lives whose origin has given no lifetime.
    private static let lifetimeSettings: [StoringRules] = {
        var atLeast = StoringRules.shared
        atLeast.lifetimeSecondsMin = 60
        var byStatus = StoringRules.shared
        byStatus.statusLifetimes = [200, 302].map { .init(status: $0, seconds: 60) }
        return [.shared, atLeast, byStatus]
    }()

    @Test("Cookies: an answer to who sent some is shared where the origin says so, else not stored")
    func answersToCookies() {
        let cookie: Lines = [("Cookie", "a=b")]
        #expect(Scene([Self.validator], request: cookie).decision.refusal == .notFreshNorCacheable)
        #expect(Scene(Self.fresh, request: cookie).decision.refusal == nil)
        func refusal(_ name: String, _ value: String, _ rules: StoringRules = .shared)
            -> StoreRefusal?
        {
            let lines: Lines = [(name, value), Self.validator]
            return Scene(lines, request: cookie, rules: rules).decision.refusal
        }
        let forNobody = [
            ("Cache-Control", "max-age=0"), ("Cache-Control", "s-maxage=0"), ("Expires", "0"),
            ("Expires", Scene.date(-60)), ("Cache-Control", "no-cache, max-age=0"),
            ("Cache-Control", "no-cache, max-age=60"), ("Cache-Control", "no-cache"),
            ("Cache-Control", "stale-while-revalidate=9"),
            ("Cache-Control", "max-age=0, stale-while-revalidate=9, must-revalidate"),
        ]
        for rules in Self.lifetimeSettings {
            var keepsRedirects = rules
            keepsRedirects.redirects = .storeAll
            for (name, value) in forNobody {
                #expect(refusal(name, value, rules) == .notFreshNorCacheable, "\(value)")
                let redirect = Scene(
                    [(name, value), Self.validator],
                    status: 302,
                    request: cookie,
                    rules: keepsRedirects
                )
                #expect(redirect.decision.refusal == .notFreshNorCacheable, "\(value)")
            }
        }
        var overriding = StoringRules.shared
        overriding.lifetimeOverrideSeconds = 60
        #expect(refusal("Cache-Control", "max-age=0", overriding) == nil)
        for value in [
            "public", "public, max-age=0", "public, no-cache", "max-age=60, no-cache=\"x\"",
            "max-age=0, stale-while-revalidate=9",
        ] {
            #expect(refusal("Cache-Control", value) == nil, "\(value)")
        }
        var deaf = StoringRules.shared
        deaf.originDirectives = .ignore
        #expect(refusal("Cache-Control", "no-cache, max-age=60", deaf) == nil)
        #expect(refusal("Cache-Control", "no-cache, max-age=0", deaf) == .notFreshNorCacheable)
        let own = Scene([Self.validator], request: cookie, rules: .private)
        #expect(own.decision.refusal == nil)
    }

    @Test("Cookies: the policies of a shared cache")
    func cookiePolicies() {
        func refusal(
            _ policy: StoringRules.CookiePolicy,
            _ lines: Lines,
            _ settings: StoringRules = .shared
        ) -> StoreRefusal? {
            var rules = settings
            rules.cookies = policy
            return Scene(lines + [("Set-Cookie", "a=b"), Self.validator], rules: rules).decision
                .refusal
        }
        let guessed: Lines = [("Last-Modified", Scene.date(-86_400))]
        let publicly: Lines = [("Cache-Control", "public, max-age=60")]
        let spent: Lines = [("Cache-Control", "max-age=0")]
        for lines in [Self.fresh, guessed, publicly, spent] {
            #expect(refusal(.refuse, lines) == .setCookie)
            #expect(refusal(.strip, lines) == nil)
            #expect(refusal(.ignore, lines) == nil)
        }
        #expect(refusal(.store, Self.fresh) == nil)
        #expect(refusal(.store, publicly) == nil)
        for rules in Self.lifetimeSettings {
            #expect(refusal(.store, guessed, rules) == .setCookie)
            #expect(refusal(.store, spent, rules) == .setCookie)
            #expect(refusal(.store, Self.fresh, rules) == nil)
        }
        var overriding = StoringRules.shared
        overriding.lifetimeOverrideSeconds = 60
        #expect(refusal(.store, guessed, overriding) == nil)
        #expect(refusal(.store, spent, overriding) == nil)
        #expect(StoringRules.shared.cookies == .refuse)
        for directive in ["private=\"Set-Cookie\"", "no-cache=\"x, set-cookie\""] {
            let line = "max-age=60, \(directive)"
            #expect(refusal(.refuse, [("Cache-Control", line)]) == nil, "\(line)")
            #expect(refusal(.refuse, [("CDN-Cache-Control", line)]) == nil, "\(line)")
        }
        #expect(refusal(.refuse, [("Cache-Control", "max-age=60, no-cache=\"x\"")]) == .setCookie)
        let scene = Scene(guessed + [("Set-Cookie", "a=b")], rules: .private)
        #expect(scene.decision.lifetime?.seconds == 8_640)
    }

    @Test("Redirects: as fresh as they say, or all of them for use offline")
    func redirects() {
        var offline = StoringRules.shared
        offline.redirects = .storeAll
        let location = ("Location", "/b")
        for status in [302, 303, 307] {
            let bare = Scene([location], status: status)
            #expect(bare.decision.refusal == .notFreshNorCacheable, "\(status)")
            #expect(Scene(Self.fresh + [location], status: status).decision.refusal == nil)
            #expect(Scene([location], status: status, rules: offline).decision.refusal == nil)
        }
        for status in [301, 302, 303, 307, 308] {
            for rules in [offline, .shared] {
                func refusal(_ lines: Lines) -> StoreRefusal? {
                    let request: Lines = [("Cookie", "a=b")]
                    return Scene(lines + [location], status: status, request: request, rules: rules)
                        .decision.refusal
                }
                #expect(refusal([]) == .notFreshNorCacheable, "\(status)")
                #expect(refusal([Self.validator]) == .notFreshNorCacheable, "\(status)")
                #expect(refusal(Self.fresh) == nil, "\(status)")
                #expect(refusal([("Cache-Control", "public"), Self.validator]) == nil, "\(status)")
            }
            var own = StoringRules.private
            own.redirects = .storeAll
            let cookie: Lines = [("Cookie", "a=b")]
            let kept = Scene([location], status: status, request: cookie, rules: own)
            #expect(kept.decision.refusal == nil, "\(status)")
        }
        for status in [301, 308] {
            #expect(Scene([location, Self.validator], status: status).decision.refusal == nil)
            #expect(Scene([location], status: status, rules: offline).decision.refusal == nil)
        }
    }

    @Test(
        "A cache told to ignore the origin's directives stores despite no-store, not despite private"
    )
    func originDirectivesIgnored() {
        var rules = StoringRules.shared
        rules.originDirectives = .ignore
        let row: Lines = [("Cache-Control", "no-store, no-cache, max-age=60")]
        let scene = Scene(row, request: [("Cache-Control", "no-store")], rules: rules)
        #expect(scene.decision.lifetime?.seconds == 60)
        #expect(!scene.stored.flags.contains(.noCache))
        let personal: Lines = [("Cache-Control", "private, max-age=60")]
        #expect(Scene(personal, rules: rules).decision.refusal == .responsePrivate)
        let authorized = Scene(row, request: [("Authorization", "x")], rules: rules)
        #expect(authorized.decision.refusal == .requestAuthorized)
    }

    @Test("Every reason has its own word")
    func refusalCodesAreDistinct() {
        let codes = StoreRefusal.allCases.map(\.code)
        #expect(Set(codes).count == codes.count)
        for code in codes {
            #expect(code.utf8.allSatisfy { $0.isLowercase || $0 == UInt8.hyphen }, "\(code)")
        }
    }
}
