import Testing

@testable import HTTPCaching

@Suite("Facts of heads")
struct FactsTests {
    @Test("Every fact of a request is read")
    func requestFacts() {
        let fields = FieldSection([
            ("authorization", "x"), ("COOKIE", "a=b"), ("Range", "bytes=0-1"), ("If-Match", "*"),
            ("If-None-Match", "*"), ("If-Modified-Since", "x"), ("If-Unmodified-Since", "x"),
            ("If-Range", "x"),
            ("Cache-Control", "max-age=1, max-stale=2, min-fresh=3, stale-if-error=4"),
            ("cache-control", "no-cache, no-store, only-if-cached"),
        ])
        let facts = RequestFacts(method: .head, fields: fields)
        #expect(facts.method == .head)
        #expect(facts.flags.rawValue == (1 << 12) - 1 - RequestFacts.Flags.maxStaleAny.rawValue)
        #expect(facts.maxAgeSeconds == 1)
        #expect(facts.maxStaleSeconds == 2)
        #expect(facts.minFreshSeconds == 3)
        #expect(facts.staleIfErrorSeconds == 4)
        #expect(facts.isConditional)
        #expect(!RequestFacts(method: .get, fields: FieldSection([("If-Matc", "*")])).isConditional)
    }

    @Test("A directive in doubt restricts a request, and relaxes nothing")
    func doubtfulRequestDirectives() {
        func facts(_ control: String) -> RequestFacts {
            RequestFacts(method: .get, fields: FieldSection([("Cache-Control", control)]))
        }
        let strict = facts("max-age=9; no-store")
        #expect(strict.flags == .noStore && strict.maxAgeSeconds == 0)
        #expect(facts("max-age=9 no-cache").flags == .noCache)
        #expect(facts("x; max-age=9").maxAgeSeconds == 0)
        for error in ["x; ", "x=\"a, ", "@ "] {
            for relaxing in ["max-stale", "max-stale=9", "stale-if-error=9", "only-if-cached"] {
                #expect(facts(error + relaxing) == RequestFacts(method: .get), "\(relaxing)")
            }
        }
    }

    @Test("A request that says nothing has no facts")
    func bareRequest() {
        let fields = FieldSection([
            ("Host", "h"), ("X-Cookie", "a"), ("Rang", "x"), ("Pragma", "x"),
        ])
        #expect(RequestFacts(method: .get, fields: fields) == RequestFacts(method: .get))
    }

    @Test("Every fact of a response is read")
    func responseFacts() {
        let facts = Scene(
            [
                ("Set-Cookie", "a"), ("Transfer-Encoding", "chunked"), ("Content-Encoding", "gzip"),
                ("Content-Range", "bytes 0-4/10"), ("Content-Length", "5"), ("Pragma", "no-cache"),
                ("Last-Modified", Scene.date(-9)), ("Date", Scene.date(-5)),
                ("Expires", Scene.date(5)),
                ("Vary", "a, b"),
            ],
            status: 206
        ).response
        #expect(facts.status == 206)
        #expect(facts.contentRange == ContentRange(range: 0..<5, bodySize: 10))
        #expect(facts.contentLength == 5)
        #expect(facts.lastModifiedSeconds == Scene.now - 9)
        #expect(facts.dateSeconds == Scene.now - 5)
        #expect(facts.expiresSeconds == Scene.now + 5)
        #expect(facts.varyMemberCount == 2)
        #expect(
            facts.flags == [
                .hasSetCookie, .hasTransferEncoding, .hasPragmaNoCache, .hasExpires,
            ]
        )
    }

    @Test("The first Date, Last-Modified and ETag count")
    func firstLineCounts() {
        let facts = Scene([
            ("Date", Scene.date(-5)), ("Date", Scene.date(-9)), ("Last-Modified", "x"),
            ("Last-Modified", Scene.date(-9)), ("ETag", "W/\"a\""), ("ETag", "\"b\""),
        ]).response
        #expect(facts.dateSeconds == Scene.now - 5)
        #expect(facts.lastModifiedSeconds == nil)
        #expect(facts.flags == .hasWeakEntityTag)
    }

    @Test(
        "RFC 9110 §9.2.1: methods, with case",
        arguments: [
            Row("GET", "GET", MethodKind.get), Row("HEAD", "HEAD", .head),
            Row("POST", "POST", .post),
            Row("PUT", "PUT", .put), Row("DELETE", "DELETE", .delete),
            Row("OPTIONS", "OPTIONS", .options), Row("TRACE", "TRACE", .trace),
            Row("QUERY", "QUERY", .query), Row("PATCH", "PATCH", .patch),
            Row("CONNECT", "CONNECT", .connect), Row("get", "get", .other),
            Row("M-SEARCH", "M-SEARCH", .other), Row("empty", "", .other),
            Row("GETS", "GETS", .other),
            Row("six letters", "REMOVE", .other), Row("seven letters", "RETRIEVE", .other),
        ]
    )
    func methods(_ row: Row<String, MethodKind>) {
        #expect(MethodKind(row.input) == row.expected)
    }

    @Test func methodsNotKnownToBeSafeAreUnsafe() {
        let safe = MethodKind.allCases.filter(\.isSafe)
        #expect(safe == [.get, .head, .options, .trace, .query])
        #expect(MethodKind.allCases.filter(\.isUnsafe).count == 6)
    }

    @Test("Answers to one client's own request are shared with no other")
    func answersToOneClient() {
        let personal = (100...599).filter { StatusFacts($0).answersOneClientOnly }
        #expect(personal == [400, 401, 406, 407, 412, 416, 417, 421, 425, 431])
    }
}
