import Testing

@testable import HTTPCaching

@Suite("Freshening, RFC 9111 §3.2, §4.3.4 and §4.3.5")
struct FresheningTests {
    private static let later = Scene.now + 100
    private static let keepingCookies: StoringRules = {
        var rules = StoringRules.shared
        rules.cookies = .store
        return rules
    }()

    private static func freshened(
        _ stored: Lines,
        _ new: Lines,
        _ rules: StoringRules = .shared
    ) -> FieldSection {
        Conditional.freshen(
            stored: FieldSection(stored),
            with304: FieldSection(new),
            rules: rules,
            receivedAtSeconds: later
        )
    }

    @Test(
        "§3.2: every field of the new response replaces the stored one",
        arguments: [
            "Test-Header", "X-Test-Header", "Content-Foo", "X-Content-Foo", "Cache-Control",
            "Content-Location", "Content-MD5", "Content-Security-Policy", "Content-Type",
            "Clear-Site-Data", "ETag", "Expires", "Public-Key-Pins", "Repr-Digest", "Set-Cookie",
            "X-Frame-Options",
        ]
    )
    func replaced(_ name: String) {
        let fields = Self.freshened(
            [(name, "a"), ("Other", "1"), (name.lowercased(), "b")],
            [(name.uppercased(), "c"), (name, "d")],
            Self.keepingCookies
        )
        #expect(fields.values(name) == ["c", "d"])
        #expect(fields.first("Other") == "1")
    }

    @Test(
        "§3.2: but for the length, and what says how the stored bytes are to be read",
        arguments: [
            "Content-Length", "Content-Encoding", "Content-Range", "Content-Digest",
        ]
    )
    func keptAsStored(_ name: String) {
        #expect(Self.freshened([(name, "1")], [(name, "2")]).values(name) == ["1"])
        #expect(!Self.freshened([], [(name, "2")]).contains(name))
    }

    @Test("RFC 9110 §8.8.1: the strong form of a weak tag does not replace it")
    func weakTagStaysWeak() {
        func tag(_ stored: String, _ new: String) -> [String] {
            Self.freshened([("ETag", stored)], [("ETag", new)]).values("ETag")
        }
        #expect(tag("W/\"a\"", "\"a\"") == ["W/\"a\""])
        #expect(tag("\"a\"", "W/\"a\"") == ["W/\"a\""])
        #expect(tag("W/\"a\"", "W/\"b\"") == ["W/\"b\""])
        #expect(tag("\"a\"", "\"a\"") == ["\"a\""])
    }

    @Test("§3.1: fields of the connection do not come in")
    func connectionFields() {
        let fields = Self.freshened(
            [("a", "1")],
            [("Connection", "a, keep-alive"), ("a", "2"), ("Keep-Alive", "x"), ("TE", "y")]
        )
        #expect(fields.first("a") == "1")
        for name in ["Connection", "Keep-Alive", "TE"] { #expect(!fields.contains(name)) }
    }

    @Test("§5.2.2.4: nor do fields that no-cache names")
    func namedFields() {
        let fields = Self.freshened([], [("Cache-Control", "no-cache=\"a\""), ("a", "1")])
        #expect(!fields.contains("a"))
    }

    @Test("A bare 304 restores the lifetime that the stored response came with")
    func bareNotModified() {
        let stored: Lines = [
            ("Date", Scene.date(0)), ("Age", "50"), ("Cache-Control", "max-age=60"),
            ("Last-Modified", Scene.date(-900)),
        ]
        let fields = Self.freshened(stored, [])
        #expect(fields.values("Date") == [HTTPDate.string(Self.later)])
        #expect(!fields.contains("Age"))
        let facts = Self.facts(fields)
        #expect(facts.freshnessLifetimeSeconds == 60)
        #expect(facts.isFresh(at: Self.later + 59))
        #expect(!facts.isFresh(at: Self.later + 60))
    }

    @Test("A guessed lifetime is guessed anew")
    func guessedAgain() {
        let stored: Lines = [("Date", Scene.date(0)), ("Last-Modified", Scene.date(-900))]
        #expect(Self.facts(FieldSection(stored)).freshnessLifetimeSeconds == 90)
        #expect(Self.facts(Self.freshened(stored, [])).freshnessLifetimeSeconds == 100)
    }

    @Test("A new lifetime and a new Age count")
    func newLifetime() {
        let stored: Lines = [("Date", Scene.date(0)), ("Cache-Control", "max-age=60")]
        let new: Lines = [("Cache-Control", "max-age=10"), ("Age", "4")]
        let facts = Self.facts(Self.freshened(stored, new))
        #expect(facts.freshnessLifetimeSeconds == 10)
        #expect(facts.correctedInitialAgeSeconds == 4)
    }

    private static func facts(_ fields: FieldSection) -> StoredFacts {
        let response = ResponseFacts(
            status: 200,
            fields: fields,
            rules: .shared,
            receivedAtSeconds: later
        )
        let request = RequestFacts(method: .get)
        let lifetime = FreshnessLifetime.calculate(
            request: request,
            response: response,
            rules: .shared,
            receivedAtSeconds: later
        )
        return StoredFacts(
            response: response,
            lifetime: lifetime,
            rules: .shared,
            requestTimeSeconds: later,
            responseTimeSeconds: later
        )
    }

    @Test(
        "§4.3.4: which stored response a 304 speaks of",
        arguments: [
            Row("the same strong tag", (["\"a\"", ""], ["\"a\"", ""]), true),
            Row("another strong tag", (["\"a\"", ""], ["\"b\"", ""]), false),
            Row("another strong tag, same date", (["\"a\"", "-60"], ["\"b\"", "-60"]), false),
            Row("a strong tag, none stored", (["", "-60"], ["\"b\"", "-60"]), false),
            Row("the same weak tag", (["W/\"a\"", ""], ["W/\"a\"", ""]), true),
            Row("another weak tag", (["W/\"a\"", ""], ["W/\"b\"", ""]), false),
            Row("another weak tag, same date", (["W/\"a\"", "-60"], ["W/\"b\"", "-60"]), true),
            Row(
                "a tag that was weakened when it was stored",
                (["W/\"a\"", ""], ["\"a\"", ""]),
                true
            ),
            Row("the same date", (["", "-60"], ["", "-60"]), true),
            Row("another date", (["", "-60"], ["", "-50"]), false),
            Row("the tag, another date", (["\"a\"", "-60"], ["\"a\"", "-50"]), true),
            Row("no validator", (["\"a\"", "-60"], ["", ""]), true),
            Row("a malformed tag, the same", (["a", ""], ["a", ""]), true),
            Row("a malformed tag is not the quoted one", (["a", ""], ["\"a\"", ""]), false),
        ] as [Row<([String], [String]), Bool>]
    )
    func identifies(_ row: Row<([String], [String]), Bool>) {
        let isIdentified = Conditional.identifies(
            stored: FieldSection(validators: row.input.0),
            with304: FieldSection(validators: row.input.1)
        )
        #expect(isIdentified == row.expected)
    }

    @Test("A 304 that changes Vary does not freshen in place")
    func changedSelection() {
        func changes(_ stored: Lines, _ new: Lines) -> Bool {
            Conditional.changesSelection(
                stored: FieldSection(stored),
                with304: FieldSection(new)
            )
        }
        #expect(!changes([("Vary", "a, b")], []))
        #expect(!changes([("Vary", "a, b")], [("Vary", "B"), ("Vary", "A")]))
        #expect(changes([("Vary", "a")], [("Vary", "b")]))
        #expect(changes([("Vary", "a")], [("Vary", "")]))
        #expect(changes([], [("Vary", "a")]))
        #expect(changes([("Vary", "a")], [("Vary", "*")]))
    }

    @Test(
        "§4.3.5: what an answer to HEAD does to a stored GET",
        arguments: [
            Row("nothing to compare", (200, []), Conditional.BodilessEffect.nothing),
            Row("the date alone", (200, ["", "-60", "5"]), .nothing),
            Row("the tag alone", (200, ["\"a\""]), .freshens),
            Row("nothing but another length", (200, ["", "", "6"]), .invalidates),
            Row("same tag, date, length", (200, ["\"a\"", "-60", "5"]), .freshens),
            Row("another tag", (200, ["\"b\""]), .invalidates),
            Row("another date", (200, ["\"a\"", "-50"]), .invalidates),
            Row("another length", (200, ["\"a\"", "-60", "6"]), .invalidates),
            Row("a length that is none", (200, ["", "", "x"]), .invalidates),
            Row("another status", (410, ["\"b\""]), .nothing),
            Row("not modified", (304, []), .nothing),
        ] as [Row<(Int, [String]), Conditional.BodilessEffect>]
    )
    func headEffect(_ row: Row<(Int, [String]), Conditional.BodilessEffect>) {
        var head = FieldSection()
        let (status, parts) = row.input
        if let tag = parts.first, !tag.isEmpty { head.append("ETag", tag) }
        if parts.count > 1, let offset = Int64(parts[1]) {
            head.append("Last-Modified", Scene.date(offset))
        }
        if parts.count > 2 { head.append("Content-Length", parts[2]) }
        let stored = FieldSection([("ETag", "\"a\""), ("Last-Modified", Scene.date(-60))])
        let effect = Conditional.headFreshens(
            stored: stored,
            storedStatus: 200,
            storedBodySize: 5,
            headStatus: status,
            headFields: head
        )
        #expect(effect == row.expected)
    }

    struct Stored: Sendable {
        var status = 200
        let fields: Lines
        let head: Lines
    }

    @Test(
        "§4.3.5: an answer to HEAD freshens a 200 of the same selection that it identifies",
        arguments: [
            Row(
                "an error",
                Stored(status: 404, fields: [("ETag", "\"a\"")], head: [("ETag", "\"a\"")]),
                Conditional.BodilessEffect.invalidates
            ),
            Row("a redirect", Stored(status: 301, fields: [], head: []), .invalidates),
            Row(
                "a new Vary",
                Stored(
                    fields: [("ETag", "\"a\"")],
                    head: [("ETag", "\"a\""), ("Vary", "Origin")]
                ),
                .invalidates
            ),
            Row(
                "the same Vary",
                Stored(
                    fields: [("ETag", "\"a\""), ("Vary", "A, B")],
                    head: [("ETag", "\"a\""), ("Vary", "b"), ("Vary", "a")]
                ),
                .freshens
            ),
            Row(
                "the date alone",
                Stored(
                    fields: [("Last-Modified", Scene.date(-60))],
                    head: [("Last-Modified", Scene.date(-60))]
                ),
                .freshens
            ),
            Row(
                "no date",
                Stored(fields: [("Last-Modified", Scene.date(-60))], head: []),
                .nothing
            ),
            Row("no validator", Stored(fields: [], head: [("Content-Length", "5")]), .nothing),
            Row("a new tag", Stored(fields: [], head: [("ETag", "\"a\"")]), .invalidates),
        ]
    )
    func headEffectOnOtherResponses(_ row: Row<Stored, Conditional.BodilessEffect>) {
        let effect = Conditional.headFreshens(
            stored: FieldSection(row.input.fields),
            storedStatus: row.input.status,
            storedBodySize: 5,
            headStatus: 200,
            headFields: FieldSection(row.input.head)
        )
        #expect(effect == row.expected)
    }

    @Test("§5.2.2.4, §5.2.2.7, §7.3: what is not stored of a 304 is for its own client")
    func unstoredFields() {
        func unstored(_ stored: Lines, _ new: Lines, _ rules: StoringRules = .shared) -> String {
            Conditional.unstoredFields(
                of: FieldSection(new),
                confirming: FieldSection(stored),
                rules: rules
            )
            .description
        }
        let cookies: Lines = [("Set-Cookie", "a=b"), ("X", "1"), ("set-cookie", "c=d")]
        #expect(unstored([], cookies) == "Set-Cookie: a=b\nset-cookie: c=d\n")
        #expect(unstored([], cookies, Self.keepingCookies).isEmpty)
        #expect(unstored([], cookies, .private).isEmpty)
        let naming: Lines = [("Cache-Control", "private=\"X, age, content-length\", no-cache=Y")]
        let named: Lines = [
            ("X", "1"), ("Y", "2"), ("Z", "3"), ("Age", "4"), ("Content-Length", "5"),
        ]
        #expect(unstored(naming, named) == "X: 1\nY: 2\n")
        #expect(unstored(naming, named, .private) == "Y: 2\n")
        #expect(unstored(naming, [("Connection", "x"), ("X", "1")]).isEmpty)
    }
}
