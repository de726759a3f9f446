import Testing

@testable import HTTPCaching

@Suite("Stored fields, RFC 9111 §3.1")
struct StoredFieldsTests {
    private static func stored(_ lines: Lines, rules: StoringRules = .shared) -> FieldSection {
        let fields = FieldSection(lines)
        let facts = ResponseFacts(
            status: 200,
            fields: fields,
            rules: rules,
            receivedAtSeconds: Scene.now
        )
        return StoredFields.make(
            from: fields,
            response: facts,
            rules: rules,
            receivedAtSeconds: Scene.now
        )
    }

    @Test("§3.1: fields of the connection are left out, all others stay")
    func connectionFields() {
        let dropped = [
            "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info",
            "Proxy-Authorization", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding",
            "Upgrade",
        ]
        let kept = [
            "Cache-Control", "Content-Encoding", "Content-Location", "Content-MD5",
            "Content-Range", "Content-Security-Policy", "Content-Type", "Clear-Site-Data", "ETag",
            "Expires", "Public-Key-Pins", "Set-Cookie", "Set-Cookie2", "X-Frame-Options",
            "X-XSS-Protection", "Test-Header", "Content-Foo", "Date", "WWW-Authenticate",
        ]
        var rules = StoringRules.shared
        rules.cookies = .store
        let fields = Self.stored((dropped + kept).map { ($0, "x") }, rules: rules)
        for name in dropped { #expect(!fields.contains(name), "\(name)") }
        for name in kept { #expect(fields.contains(name), "\(name)") }
    }

    @Test("RFC 9110 §7.6.1: what Connection lists, but never what says who may see the message")
    func connectionLists() {
        let fields = Self.stored([
            ("Connection", "a, B"), ("Connection", "close, cache-control, vary"), ("A", "1"),
            ("b", "2"), ("c", "3"), ("Cache-Control", "no-cache"), ("Vary", "Cookie"),
        ])
        #expect(!fields.contains("a"))
        #expect(!fields.contains("B"))
        #expect(fields.first("c") == "3")
        #expect(fields.first("Cache-Control") == "no-cache")
        #expect(fields.first("Vary") == "Cookie")
    }

    @Test("§5.2.2.4: fields that no-cache names")
    func noCacheNames() {
        let lines: Lines = [
            ("Cache-Control", "no-cache=\"a, B\", no-cache=c"), ("A", "1"), ("b", "2"), ("C", "3"),
            ("d", "4"),
        ]
        for rules in [StoringRules.shared, .private] {
            let fields = Self.stored(lines, rules: rules)
            #expect(fields.count == 3)
            #expect(fields.contains("cache-control"))
            #expect(fields.contains("d"))
            #expect(fields.contains("Date"))
        }
    }

    @Test("§5.2.2.7: fields that private names, in a shared cache")
    func privateNames() {
        let lines: Lines = [("Cache-Control", "private=\"set-cookie\""), ("Set-Cookie", "a=b")]
        #expect(!Self.stored(lines).contains("set-cookie"))
        #expect(Self.stored(lines, rules: .private).contains("set-cookie"))
        let both: Lines = [
            ("Cache-Control", "no-cache=\"a\", private=\"b\""), ("a", "1"), ("b", "2"),
        ]
        #expect(!Self.stored(both).contains("b"))
        #expect(Self.stored(both, rules: .private).contains("b"))
        #expect(!Self.stored(both, rules: .private).contains("a"))
        let targeted: Lines = [("CDN-Cache-Control", "private=\"a\", max-age=9"), ("a", "1")]
        #expect(!Self.stored(targeted).contains("a"))
    }

    @Test(
        "RFC 9213 §2.1: a parameter takes no name from a targeted field",
        arguments: [
            "private=\"a, set-cookie\";v=1, max-age=9", "max-age=9, no-cache=\"Set-Cookie , A\";v",
            "private=\"a\";v=\"b\";w=?0 , no-cache=\"set-cookie\";x=1.5",
        ]
    )
    func namesWithParameters(_ directives: String) {
        var rules = StoringRules.shared
        rules.cookies = .store
        let lines: Lines = [
            ("CDN-Cache-Control", directives), ("a", "1"), ("Set-Cookie", "a=b"), ("c", "2"),
        ]
        let fields = Self.stored(lines, rules: rules)
        #expect(!fields.contains("a"))
        #expect(!fields.contains("set-cookie"))
        #expect(fields.contains("c"))
    }

    @Test("Set-Cookie is left out where the policy says so")
    func cookiesLeftOut() {
        var rules = StoringRules.shared
        for (policy, isKept) in [
            (StoringRules.CookiePolicy.refuse, false), (.strip, false), (.store, true),
            (.ignore, true),
        ] {
            rules.cookies = policy
            let stored = Self.stored([("Set-Cookie", "a=b")], rules: rules)
            #expect(stored.contains("set-cookie") == isKept, "\(policy)")
        }
    }

    @Test("RFC 9110 §6.6.1: a Date that is missing or no date becomes the time of receipt")
    func dateIsCompleted() {
        #expect(Self.stored([]).values("Date") == [Scene.date(0)])
        #expect(Self.stored([("Date", "foo")]).values("Date") == [Scene.date(0)])
        #expect(Self.stored([("Date", Scene.date(-60))]).values("Date") == [Scene.date(-60)])
    }

    @Test("RFC 9112 §6.3: a length beside Transfer-Encoding is not kept")
    func lengthBesideTransferEncoding() {
        let lines: Lines = [("Transfer-Encoding", "chunked"), ("Content-Length", "5")]
        #expect(!Self.stored(lines).contains("content-length"))
        #expect(Self.stored([("Content-Length", "5")]).contains("content-length"))
    }
}
