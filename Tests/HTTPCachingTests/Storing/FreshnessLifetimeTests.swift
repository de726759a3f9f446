import Testing

@testable import HTTPCaching

@Suite("Freshness lifetime, RFC 9111 §4.2.1 and §4.2.2")
struct FreshnessLifetimeTests {
    private static func seconds(_ lines: Lines, _ rules: StoringRules = .shared) -> UInt32 {
        Scene(lines, rules: rules).lifetime.seconds
    }

    @Test("§4.2.1: s-maxage before max-age before Expires before a guess")
    func precedence() {
        let modified = ("Last-Modified", Scene.date(-1_000))
        let expires = ("Expires", Scene.date(30))
        let all: Lines = [("Cache-Control", "max-age=20, s-maxage=10"), expires, modified]
        #expect(Self.seconds(all) == 10)
        #expect(Self.seconds(all, .private) == 20)
        #expect(Self.seconds([("Cache-Control", "max-age=20"), expires, modified]) == 20)
        #expect(Self.seconds([expires, modified]) == 30)
        #expect(Self.seconds([modified]) == 100)
        #expect(Self.seconds([]) == 0)
        #expect(Self.seconds([("Cache-Control", "max-age=20"), ("Expires", "0")]) == 20)
        #expect(Self.seconds([("Cache-Control", "max-age=0"), expires, modified]) == 0)
        #expect(Self.seconds([("Cache-Control", "max-age=x"), expires, modified]) == 0)
        #expect(Self.seconds([("Expires", "x"), modified]) == 0)
    }

    @Test(
        "§5.2: how the number may be written",
        arguments: [
            Row("plain", "max-age=60", UInt32(60)),
            Row("quoted", "max-age=\"60\"", 60),
            Row("any case", "MaX-aGe=60", 60),
            Row("leading zeros", "max-age=0060", 60),
            Row("zero", "max-age=0", 0),
            Row("as large as the RFC names", "max-age=2147483648", 2_147_483_648),
            Row("larger", "max-age=99999999999", 2_147_483_648),
            Row("larger than 64 bits", "max-age=99999999999999999999999999", 2_147_483_648),
            Row("negative", "max-age=-60", 0),
            Row("signed", "max-age=+60", 0),
            Row("fraction", "max-age=60.5", 0),
            Row("zero fraction", "max-age=60.0", 0),
            Row("leading letter", "max-age=a60", 0),
            Row("trailing letter", "max-age=60a", 0),
            Row("single quotes", "max-age='60'", 0),
            Row("space before the sign", "max-age =60", 0),
            Row("space after the sign", "max-age= 60", 0),
            Row("space inside the quotes", "max-age=\" 60\"", 0),
            Row("nothing after the sign", "max-age=", 0),
            Row("no argument", "max-age", 0),
            Row("empty quotes", "max-age=\"\"", 0),
            Row("unclosed quote", "max-age=\"60", 0),
            Row("something after the quotes", "max-age=\"60\"x", 0),
            Row("unknown directives around it", "foo, bar=1, max-age=60, baz=\"x\"", 60),
            Row("in a quoted string before it", "extension=\"max-age=3600\", max-age=1", 1),
            Row("in a quoted string after it", "max-age=1, extension=\"max-age=3600\"", 1),
            Row("after an escaped quote", "extension=\"a\\\", max-age=3600\", max-age=1", 1),
            Row("after empty members", ",, ,max-age=60,", 60),
            Row("after something that is no directive", "=, @, max-age=60", 60),
            Row("after a malformed member", "foo; bar, max-age=60", 60),
            Row("behind something that is no directive", "@ max-age=60", 0),
            Row("behind another directive", "foo; max-age=60", 0),
            Row("in the quotes of a malformed member", "foo \"max-age=1\" x, max-age=60", 60),
            Row("twice the same", "max-age=60, max-age=60", 60),
            Row("twice, the smaller first", "max-age=1, max-age=1800", 1),
            Row("twice, the smaller last", "max-age=1800, max-age=1", 1),
            Row("twice, one no number", "max-age=1800, max-age=x", 0),
            Row("behind an unclosed quote", "foo=\"bar, max-age=60", 0),
            Row("before an unclosed quote", "max-age=60, foo=\"bar", 0),
        ]
    )
    func maxAgeForms(_ row: Row<String, UInt32>) {
        #expect(Self.seconds([("Cache-Control", row.input)]) == row.expected)
    }

    @Test("§4.2.1: the lines of a field are one list")
    func linesAreOneList() {
        let lines: Lines = [("Cache-Control", "max-age=1800"), ("cache-control", "s-maxage=5")]
        #expect(Self.seconds(lines) == 5)
        let twice: Lines = [("Cache-Control", "max-age=1"), ("Cache-Control", "max-age=1800")]
        #expect(Self.seconds(twice) == 1)
        let open: Lines = [("Cache-Control", "foo=\"bar"), ("Cache-Control", "max-age=1800")]
        #expect(Self.seconds(open) == 0)
    }

    @Test("A restriction cannot hide behind a quote that never closes")
    func restrictionsBehindAnUnclosedQuoteCount() {
        for control in ["max-age=60, foo=\"bar, no-store", "max-age=60, foo \"x, no-store"] {
            #expect(Scene([("Cache-Control", control)]).decision.refusal == .responseNoStore)
        }
    }

    struct Hidden: Sendable {
        let control: String
        var fields: Lines = []
        var request: Lines = []
    }

    @Test(
        "A restriction cannot hide behind text that breaks the grammar",
        arguments: [
            Row(
                "private, with Authorization",
                Hidden(
                    control: "must-revalidate; private, max-age=600",
                    request: [("Authorization", "x")]
                ),
                StoreRefusal.responsePrivate
            ),
            Row(
                "private in the last member",
                Hidden(control: "s-maxage=600, max-age=0; private"),
                .responsePrivate
            ),
            Row(
                "no-store",
                Hidden(control: "max-age=0; no-store", fields: [("ETag", "\"a\"")]),
                .responseNoStore
            ),
            Row(
                "private behind a space",
                Hidden(
                    control: "max-age=60 private",
                    fields: [("Last-Modified", Scene.date(-1_000))]
                ),
                .responsePrivate
            ),
            Row(
                "no-store in the first member",
                Hidden(control: ";no-store, max-age=60"),
                .responseNoStore
            ),
            Row(
                "private with names",
                Hidden(control: "max-age=60, foo; private=\"set-cookie\""),
                .responsePrivate
            ),
            Row(
                "behind a quoted string",
                Hidden(control: "max-age=60, foo=\"a, b\"no-store"),
                .responseNoStore
            ),
        ] as [Row<Hidden, StoreRefusal>]
    )
    func restrictionsBehindAnErrorCount(_ row: Row<Hidden, StoreRefusal>) {
        let scene = Scene(
            [("Cache-Control", row.input.control)] + row.input.fields,
            request: row.input.request
        )
        #expect(scene.decision.refusal == row.expected)
    }

    @Test("A restriction of stale use counts in doubt; words in a quoted string do not")
    func staleUseBehindAnErrorIsForbidden() {
        for control in ["foo; must-revalidate", "foo \"a\" proxy-revalidate", "foo; s-maxage=9"] {
            #expect(Scene([("Cache-Control", control)]).stored.flags == .mustRevalidate)
        }
        let always = Scene([("Cache-Control", "max-age=60, foo; no-cache=\"x\"")])
        #expect(always.stored.flags == .noCache)
        let quoted = Scene([("Cache-Control", "max-age=60, foo \"no-store, private\" no-cache-x")])
        #expect(quoted.decision.lifetime?.seconds == 60)
    }

    @Test(
        "A permission counts neither behind text that breaks the grammar nor behind an open quote",
        arguments: ["ext=\"a, ", "ext; ", "@ ", "ext=\"a\" "]
    )
    func permissionsInDoubtDoNotCount(_ error: String) {
        func scene(_ control: String, _ request: Lines = [], status: Int = 200) -> Scene {
            let lines: Lines = [("Cache-Control", control), ("ETag", "\"a\"")]
            return Scene(lines, status: status, request: request)
        }
        for permission in ["public", "must-revalidate", "s-maxage=60"] {
            let shared = scene(error + permission, [("Authorization", "x")])
            #expect(shared.decision.refusal == .requestAuthorized, "\(permission)")
        }
        let cookie = scene(error + "public", [("Cookie", "a=b")])
        #expect(cookie.decision.refusal == .notFreshNorCacheable)
        let understood = scene("no-store, \(error)must-understand")
        #expect(understood.decision.refusal == .responseNoStore)
        let unknown = scene("max-age=60, \(error)must-understand", status: 599)
        #expect(unknown.decision.refusal == .statusNotUnderstood)
        #expect(!scene(error + "immutable").stored.flags.contains(.immutable))
    }

    @Test("A quote that never closes cancels the stale windows before and after it")
    func staleWindowsOfAnUnclosedQuote() {
        for control in [
            "ext=\"note, stale-while-revalidate=31536000, stale-if-error=31536000",
            "stale-while-revalidate=9, stale-if-error=9, ext=\"note",
        ] {
            let stored = Scene([("Cache-Control", control)]).stored
            #expect(stored.staleWhileRevalidateSeconds == 0, "\(control)")
            #expect(stored.staleIfErrorSeconds == 0, "\(control)")
            #expect(stored.flags == [.hasStaleWhileRevalidate, .hasStaleIfError], "\(control)")
        }
    }

    @Test(
        "§5.3: Expires less Date",
        arguments: [
            Row("in the future", ("60", ""), UInt32(60)),
            Row("now", ("0", ""), 0),
            Row("in the past", ("-60", ""), 0),
            Row("both ahead of us", ("300", "400"), 0),
            Row("Date behind us", ("10", "-10"), 20),
            Row("Date no date: the time of receipt", ("10", "foo"), 10),
        ]
    )
    func expires(_ row: Row<(String, String), UInt32>) {
        func date(_ text: String) -> String { Int64(text).map { Scene.date($0) } ?? text }
        let lines: Lines = [
            ("Expires", date(row.input.0)),
            ("Date", row.input.1.isEmpty ? Scene.date(0) : date(row.input.1)),
        ]
        #expect(Self.seconds(lines) == row.expected)
    }

    @Test(
        "§5.3: what is no date is in the past",
        arguments: [
            "0", "-1", "", "never", "Thu, 18 Aug 2050 02:01:18 UTC",
            "Thu, 18 Aug 2050 02:01:18 AEST",
            "Thu, 18 Aug 50 02:01:18 GMT", "Thu 18 Aug 2050 02:01:18 GMT",
            "Thu, 18  Aug  2050 02:01:18 GMT", "Thu, 18-Aug-2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 02.01.18 GMT", "Thu, 18 Aug 2050 2:01:18 GMT", "1994-11-06T08:49:37Z",
        ]
    )
    func faultyExpires(_ text: String) {
        let lines: Lines = [("Expires", text), ("Last-Modified", Scene.date(-86_400))]
        #expect(Scene(lines).lifetime == FreshnessLifetime(seconds: 0, source: .expires))
    }

    @Test("§5.3: several Expires: the earliest, and none if one is no date")
    func severalExpires() {
        let later = ("Expires", Scene.date(90))
        let sooner = ("Expires", Scene.date(30))
        #expect(Self.seconds([later, sooner]) == 30)
        #expect(Self.seconds([sooner, later]) == 30)
        #expect(Self.seconds([later, ("Expires", "0")]) == 0)
    }

    @Test("§4.2.2: only some statuses, and what is marked public", arguments: 200...599)
    func heuristicStatuses(_ status: Int) {
        let modified = ("Last-Modified", Scene.date(-1_000))
        let scene = Scene([modified], status: status)
        let cacheable = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501]
        #expect((scene.lifetime.seconds == 100) == cacheable.contains(status))
        let marked = Scene([modified, ("Cache-Control", "public")], status: status)
        #expect(marked.lifetime == FreshnessLifetime(seconds: 100, source: .heuristic))
    }

    @Test("§4.2.2: the share, its cap, and no guess without Last-Modified")
    func heuristicShare() {
        #expect(Self.seconds([("Last-Modified", Scene.date(-86_400))]) == 8_640)
        #expect(Self.seconds([("Last-Modified", Scene.date(-86_400 * 100))]) == 86_400)
        #expect(Self.seconds([("Last-Modified", Scene.date(60))]) == 0)
        #expect(Self.seconds([("Last-Modified", "yesterday")]) == 0)
        #expect(Self.seconds([("ETag", "\"a\"")]) == 0)
        var rules = StoringRules.shared
        rules.heuristic = .init(permille: 500, lifetimeSecondsMax: 100)
        #expect(Self.seconds([("Last-Modified", Scene.date(-100))], rules) == 50)
        #expect(Self.seconds([("Last-Modified", Scene.date(-1_000))], rules) == 100)
        rules.heuristic = nil
        #expect(Self.seconds([("Last-Modified", Scene.date(-1_000))], rules) == 0)
    }

    @Test("§4.2.2: a shared cache guesses nothing about what may be one user's own")
    func noGuessWithCookies() {
        let modified = ("Last-Modified", Scene.date(-1_000))
        let cookie: Lines = [("Cookie", "a=b")]
        #expect(Scene([modified], request: cookie).lifetime.seconds == 0)
        #expect(Scene([modified, ("Set-Cookie", "a=b")]).lifetime.seconds == 0)
        #expect(Scene([modified], request: cookie, rules: .private).lifetime.seconds == 100)
        let marked: Lines = [modified, ("Cache-Control", "public")]
        #expect(Scene(marked, request: cookie).lifetime.seconds == 100)
    }

    @Test("§5.4: Pragma in a response stops a guess, and nothing else")
    func pragmaInAResponse() {
        let pragma = ("Pragma", "no-cache")
        #expect(Self.seconds([("Last-Modified", Scene.date(-1_000)), pragma]) == 0)
        #expect(Self.seconds([("Cache-Control", "max-age=60"), pragma]) == 60)
        #expect(Self.seconds([("Expires", Scene.date(60)), pragma]) == 60)
        let other: Lines = [("Last-Modified", Scene.date(-1_000)), ("Pragma", "foo")]
        #expect(Self.seconds(other) == 100)
    }

    @Test("Lifetimes by status stand where the response gives none")
    func statusLifetimes() {
        var rules = StoringRules.shared
        rules.statusLifetimes = [.init(status: 404, seconds: 10), .init(status: 503, seconds: 1)]
        #expect(Scene([], status: 404, rules: rules).decision.lifetime?.seconds == 10)
        #expect(Scene([], status: 503, rules: rules).decision.lifetime?.source == .status)
        #expect(Scene([], status: 500, rules: rules).decision.refusal == .notFreshNorCacheable)
        let explicit = Scene([("Cache-Control", "max-age=60")], status: 404, rules: rules)
        #expect(explicit.decision.lifetime?.seconds == 60)
        let forbidden = Scene([("Cache-Control", "no-store")], status: 404, rules: rules)
        #expect(forbidden.decision.refusal == .responseNoStore)
    }

    @Test("The owner's lifetime replaces the origin's; bounds bend it")
    func overrideAndClamps() {
        var rules = StoringRules.shared
        rules.lifetimeSecondsMin = 50
        rules.lifetimeSecondsMax = 100
        #expect(Self.seconds([("Cache-Control", "max-age=10")], rules) == 50)
        #expect(Self.seconds([("Cache-Control", "max-age=70")], rules) == 70)
        #expect(Self.seconds([("Cache-Control", "max-age=1000")], rules) == 100)
        rules.lifetimeSecondsMin = 500
        #expect(Self.seconds([("Cache-Control", "max-age=10")], rules) == 100)
        rules.lifetimeOverrideSeconds = 7
        let scene = Scene([("Cache-Control", "max-age=1000")], rules: rules)
        #expect(scene.lifetime == FreshnessLifetime(seconds: 7, source: .override))
        #expect(Scene([], status: 302, rules: rules).decision.lifetime?.seconds == 7)
        let forbidden = Scene([("Cache-Control", "no-store")], rules: rules)
        #expect(forbidden.decision.refusal == .responseNoStore)
    }
}
