import Testing

@testable import HTTPCaching

@Suite("Invalidation, RFC 9111 §4.4")
struct InvalidationTests {
    private static let url = "https://h.example/dir/page?q=1"

    private static func targets(
        _ lines: Lines = [],
        method: MethodKind = .post,
        status: Int = 200
    ) -> [String] {
        Invalidation.targets(
            method: method,
            status: status,
            requestURL: url,
            responseFields: FieldSection(lines)
        )
    }

    @Test("Unsafe methods, unknown ones too, and no others")
    func methods() {
        for method in MethodKind.allCases {
            #expect(Self.targets(method: method).isEmpty == method.isSafe, "\(method)")
        }
        #expect(Self.targets(method: MethodKind("M-SEARCH")) == [Self.url])
    }

    @Test("Only when the answer is no error: 2xx and 3xx")
    func statuses() {
        for status in 100...599 {
            let isSuccess = (200...399).contains(status)
            #expect(Self.targets(status: status).isEmpty != isSuccess, "\(status)")
        }
    }

    @Test(
        "Location and Content-Location of the same origin",
        arguments: [
            Row("relative", "other", ["https://h.example/dir/other"]),
            Row("absolute path", "/a/./b/../c", ["https://h.example/a/c"]),
            Row("query only", "?q=2", ["https://h.example/dir/page?q=2"]),
            Row("absolute", "https://h.example/x", ["https://h.example/x"]),
            Row(
                "host in any case, default port",
                "HTTPS://H.Example:443/x",
                ["https://h.example/x"]
            ),
            Row("no path", "https://h.example", ["https://h.example/"]),
            Row("fragment", "/x#frag", ["https://h.example/x"]),
            Row("without scheme", "//h.example/x", ["https://h.example/x"]),
            Row("the target itself", "https://h.example/dir/page?q=1", []),
            Row("empty: the target itself", "", []),
            Row("another scheme", "http://h.example/x", []),
            Row("another host", "https://other.example/x", []),
            Row("another port", "https://h.example:8443/x", []),
            Row("a host that ends alike", "https://xh.example/x", []),
            Row("user information names no origin", "https://h.example@evil.example/x", []),
            Row("a backslash is in no URI", "https://evil.example\\@h.example/x", []),
            Row("no URI", "http:// x", []),
            Row("no hierarchy", "mailto:a@h.example", []),
        ]
    )
    func locations(_ row: Row<String, [String]>) {
        for name in ["Location", "Content-Location"] {
            #expect(Self.targets([(name, row.input)]) == [Self.url] + row.expected, "\(name)")
        }
    }

    @Test func bothLocationsCountOnce() {
        let lines: Lines = [("Location", "/a"), ("Content-Location", "/b")]
        #expect(Self.targets(lines) == [Self.url, "https://h.example/a", "https://h.example/b"])
        let same: Lines = [("Location", "/a"), ("Content-Location", "/a")]
        #expect(Self.targets(same) == [Self.url, "https://h.example/a"])
    }

    /// The two spellings have different bytes, and Unicode calls them equal.
    @Test func targetsAreComparedByBytes() {
        let lines: Lines = [("Location", "/caf\u{e9}"), ("Content-Location", "/cafe\u{301}")]
        #expect(Self.targets(lines).count == 3)
        let fields = FieldSection([("Content-Location", "/cafe\u{301}")])
        let mayAnswer = Invalidation.postMayAnswerGet(
            status: 200,
            requestURL: "https://h.example/caf\u{e9}",
            responseFields: fields
        )
        #expect(!mayAnswer)
    }

    @Test func targetThatIsNotAURIIsInvalidated() {
        let targets = Invalidation.targets(
            method: .put,
            status: 200,
            requestURL: "http://h/a b",
            responseFields: FieldSection([("Location", "/c")])
        )
        #expect(targets == ["http://h/a b"])
    }

    @Test("RFC 9110 §9.3.3: when the answer to a POST may answer a GET")
    func postAnswers() {
        func may(_ location: String?, _ status: Int = 200) -> Bool {
            Invalidation.postMayAnswerGet(
                status: status,
                requestURL: Self.url,
                responseFields: FieldSection(location.map { [("Content-Location", $0)] } ?? [])
            )
        }
        #expect(may(Self.url))
        #expect(may(""))
        #expect(may("page?q=1"))
        #expect(!may("page"))
        #expect(!may(nil))
        #expect(!may(Self.url, 201))
    }
}

@Suite("URI references, RFC 3986")
struct URIReferenceTests {
    @Test(
        "§5.4: the examples of the RFC",
        arguments: [
            ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"), ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q"), ("g#s", "http://a/b/c/g"),
            ("g?y#s", "http://a/b/c/g?y"), (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"),
            ("g;x?y#s", "http://a/b/c/g;x?y"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../", "http://a/b/"),
            ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"),
            ("../../g", "http://a/g"), ("../../../g", "http://a/g"),
            ("../../../../g", "http://a/g"),
            ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."),
            (".g", "http://a/b/c/.g"), ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"), ("../\u{301}g", "http://a/b/\u{301}g"),
            ("..\u{301}/g", "http://a/b/c/..\u{301}/g"), ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
            ("g;x=1/../y", "http://a/b/c/y"), ("g?y/./x", "http://a/b/c/g?y/./x"),
            ("g?y/../x", "http://a/b/c/g?y/../x"), ("http:g", "http:g"),
        ]
    )
    func examples(_ reference: String, _ expected: String) throws {
        let base = try #require(URIReference("http://a/b/c/d;p?q"))
        let resolved = try #require(URIReference(reference)).resolved(against: base)
        #expect(resolved.target == expected)
    }

    @Test(
        "RFC 9110 §4.2.3: scheme and host in lower case, no default port, nothing else",
        arguments: [
            ("HTTP://EXAMPLE.org", "http://example.org/"),
            ("http://example.org:80/a", "http://example.org/a"),
            ("http://example.org:/a", "http://example.org/a"),
            ("https://example.org:80/a", "https://example.org:80/a"),
            ("http://[::1]:80/a", "http://[::1]/a"), ("http://[::1]/a", "http://[::1]/a"),
            ("http://User@Example.org/A", "http://User@example.org/A"),
            ("http://h/A/%2e%2E/%7eb//c/../d?X=%41", "http://h/A/%2e%2E/%7eb//c/../d?X=%41"),
            ("http://h?q", "http://h/?q"), ("/a", "/a"),
            ("http://h/\u{301}a", "http://h/\u{301}a"),
            ("http://h/a?\u{301}b#\u{301}c", "http://h/a?\u{301}b"),
        ]
    )
    func target(_ text: String, _ expected: String) {
        #expect(URIReference(text)?.target == expected)
    }

    @Test(
        "What is none",
        arguments: [
            "a b", "a\r\n", "http://h/\"", "a\\b", "1:2", "a\u{7F}", "<>", "http://h::80/",
            "http://h:8x/", "http://a@b@c/", "http://[::1/", "http://[::1]x/", "http://h]/",
            "http://a[b/", "http://h:-1/",
        ]
    )
    func malformed(_ text: String) {
        #expect(URIReference(text) == nil)
    }

    @Test("RFC 3986 §3.3: a path without authority never turns into one")
    func slashesAfterDotSegments() throws {
        let base = try #require(URIReference("http://a/b"))
        let resolved = try #require(URIReference("http:/.//evil/x")).resolved(against: base)
        #expect(resolved.target == "http:/.//evil/x")
        #expect(URIReference(resolved.target)?.authority == nil)
        let here = try #require(URIReference("/.//c")).resolved(against: base)
        #expect(here.target == "http://a//c")
    }

    @Test func overlongReferenceIsRefused() {
        let longest = "/" + String(repeating: "a", count: URIReference.bytesMax - 1)
        #expect(URIReference(longest) != nil)
        #expect(URIReference(longest + "a") == nil)
    }
}
