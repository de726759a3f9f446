import Testing

@testable import HTTPCaching

@Suite("Evaluating a client's conditions, RFC 9110 §13 and RFC 9111 §4.3.2")
struct EvaluationTests {
    private static let tagged: Lines = [("ETag", "\"a\""), ("Last-Modified", Scene.date(-60))]

    private static func evaluate(
        _ request: Lines,
        stored: Lines = tagged,
        status: Int = 200,
        method: MethodKind = .get
    ) -> Conditional.Evaluation {
        let scene = Scene(stored, status: status)
        let fields = FieldSection(request)
        return Conditional.evaluateClientConditionals(
            request: fields,
            requestFacts: RequestFacts(method: method, fields: fields),
            stored: scene.responseFields,
            storedFacts: scene.stored,
            nowSeconds: Scene.now
        )
    }

    @Test(
        "§13.1.2: If-None-Match, compared weakly",
        arguments: [
            Row("the tag", "\"a\"", Conditional.Evaluation.notModified),
            Row("the tag, weak", "W/\"a\"", .notModified),
            Row("first of a list", "\"a\", \"b\", \"c\"", .notModified),
            Row("middle of a list", "\"b\", \"a\", \"c\"", .notModified),
            Row("last of a list", "\"b\",\"c\" , \"a\"", .notModified),
            Row("a tag with a comma before it", "\"x,y\", \"a\"", .notModified),
            Row("any", "*", .notModified),
            Row("another tag", "\"b\"", .full),
            Row("unquoted", "a", .full),
            Row("the tag within another", "\"b,a\"", .full),
            Row("another case", "\"A\"", .full),
            Row("empty", "", .full),
        ]
    )
    func ifNoneMatch(_ row: Row<String, Conditional.Evaluation>) {
        #expect(Self.evaluate([("If-None-Match", row.input)]) == row.expected)
        #expect(Self.evaluate([("If-None-Match", row.input)], method: .head) == row.expected)
    }

    @Test("§13.1.2: several lines are one list; obs-text and malformed tags compare by their bytes")
    func ifNoneMatchForms() {
        let lines: Lines = [("If-None-Match", "\"b\""), ("If-None-Match", "\"a\"")]
        #expect(Self.evaluate(lines) == .notModified)
        for tag in ["\"abcdefü\"", "abcdef", "w/\"a\"", "W\\\"a\"", "W/\"a\""] {
            let result = Self.evaluate([("If-None-Match", tag)], stored: [("ETag", tag)])
            #expect(result == .notModified, "\(tag)")
        }
        #expect(Self.evaluate([("If-None-Match", "\"a\"")], stored: []) == .full)
        #expect(Self.evaluate([("If-None-Match", "*")], stored: []) == .notModified)
    }

    @Test("§13.1.2: a tag that is repeated as it was sent equals itself, if it is a tag")
    func repeatedTags() {
        let texts = [
            "\"a\"", "W/\"a\"", "a", "\"a,b\"", "\"a\", \"b\"", "a b", "a,b", "\"", "*", "W/", "",
            ",", "\"a\"b\"",
        ]
        for stored in texts {
            for asked in texts {
                // As the list is read member by member.
                let isNamed = stored.withByteRun { stored in
                    asked.withByteRun { asked in
                        var members = EntityTagScanner(asked)
                        var isNamed = asked.equals(exactly: "*")
                        guard let tag = EntityTag(stored) else { return isNamed }
                        while let next = members.next() {
                            if tag.weaklyEquals(next) { isNamed = true }
                        }
                        return isNamed
                    }
                }
                let others: Lines = [("If-None-Match", "\"x\""), ("If-None-Match", "y")]
                for place in 0...2 {
                    var lines = others
                    lines.insert(("If-None-Match", asked), at: place)
                    let names = FieldSection([("ETag", stored)]).withUnsafeBytes {
                        Conditional.ifNoneMatch(of: FieldSection(lines), names: $0)
                    }
                    #expect(names == isNamed, "\(asked) for \(stored)")
                }
            }
        }
    }

    @Test("§13.2.2: If-None-Match before If-Modified-Since")
    func precedence() {
        let since = ("If-Modified-Since", Scene.date(0))
        #expect(Self.evaluate([("If-None-Match", "\"b\""), since]) == .full)
        let old = ("If-Modified-Since", Scene.date(-9_000))
        #expect(Self.evaluate([("If-None-Match", "\"a\""), old]) == .notModified)
    }

    @Test("§4.3.2: If-Modified-Since by Last-Modified, else by Date")
    func ifModifiedSince() {
        func result(_ text: String, _ stored: Lines = Self.tagged) -> Conditional.Evaluation {
            Self.evaluate([("If-Modified-Since", text)], stored: stored)
        }
        #expect(result(Scene.date(-60)) == .notModified)
        #expect(result(Scene.date(0)) == .notModified)
        #expect(result(Scene.date(-61)) == .full)
        #expect(result("Sunday, 06-Nov-94 08:49:37 GMT") == .notModified)
        #expect(result("Sun Nov  6 08:49:37 1994") == .notModified)
        #expect(result("yesterday") == .full)
        #expect(result(Scene.date(0), []) == .notModified)
        #expect(result(Scene.date(-1), []) == .full)
        let twice: Lines = [
            ("If-Modified-Since", Scene.date(0)), ("If-Modified-Since", Scene.date(0)),
        ]
        #expect(Self.evaluate(twice) == .full)
        #expect(Self.evaluate([twice[0]], method: .post) == .full)
    }

    @Test("§4.3.2: If-Match and If-Unmodified-Since are for the origin")
    func writeConditionsGoToTheOrigin() {
        #expect(Self.evaluate([("If-Match", "\"a\"")]) == .forward)
        #expect(Self.evaluate([("If-Unmodified-Since", Scene.date(0))]) == .forward)
    }

    @Test("§13.1.2: If-None-Match with a method that is no GET or HEAD asks for a 412")
    func ifNoneMatchOfAnotherMethod() {
        let asked: Lines = [("If-None-Match", "*")]
        #expect(Self.evaluate(asked, method: .query) == .preconditionFailed)
    }

    @Test(
        "§13.1.5: If-Range takes a strong tag, or exactly the date",
        arguments: [
            Row("the tag", "\"a\"", Conditional.Evaluation.rangeAllowed),
            Row("the tag, weak", "W/\"a\"", .full),
            Row("another tag", "\"b\"", .full),
            Row("a list", "\"a\", \"b\"", .full),
            Row("the date", Scene.date(-60), .rangeAllowed),
            Row("a later date", Scene.date(0), .full),
            Row("neither", "yesterday", .full),
        ]
    )
    func ifRange(_ row: Row<String, Conditional.Evaluation>) {
        let range = ("Range", "bytes=0-1")
        #expect(Self.evaluate([range, ("If-Range", row.input)]) == row.expected)
        #expect(Self.evaluate([("If-Range", row.input)]) == .full)
        let weak: Lines = [("ETag", "W/\"a\""), ("Last-Modified", Scene.date(0))]
        let result = Self.evaluate([range, ("If-Range", row.input)], stored: weak)
        #expect(result == .full)
    }

    @Test("§8.8.2.2: If-Range takes no date that the Date of this cache alone makes strong")
    func ifRangeByAWeakDate() {
        // The strong tag makes no date strong.
        let scene = Scene([("ETag", "\"a\""), ("Last-Modified", Scene.date(-60))])
        let request = FieldSection([("Range", "bytes=0-1"), ("If-Range", Scene.date(-60))])
        for isStrong in [true, false] {
            var facts = scene.stored
            if !isStrong { facts.flags.remove(.hasStrongDate) }
            let result = Conditional.evaluateClientConditionals(
                request: request,
                requestFacts: RequestFacts(method: .get, fields: request),
                stored: scene.responseFields,
                storedFacts: facts,
                nowSeconds: Scene.now
            )
            #expect(result == (isStrong ? .rangeAllowed : .full))
        }
    }

    @Test("§14.2: Range is for GET, and comes after the conditions")
    func range() {
        let range = ("Range", "bytes=0-1")
        #expect(Self.evaluate([range]) == .rangeAllowed)
        #expect(Self.evaluate([range], method: .head) == .full)
        #expect(Self.evaluate([range, ("If-None-Match", "\"a\"")]) == .notModified)
        #expect(Self.evaluate([range, ("If-None-Match", "\"b\"")]) == .rangeAllowed)
    }

    @Test("§13.2.1: conditions do not touch what is no success")
    func onlySuccesses() {
        let request: Lines = [("If-None-Match", "*"), ("Range", "bytes=0-1")]
        for status in [301, 404, 410, 500] {
            #expect(Self.evaluate(request, status: status) == .full, "\(status)")
        }
        #expect(Self.evaluate(request, status: 204) == .notModified)
    }

    @Test("RFC 9110 §15.4.5: the fields of a 304")
    func notModifiedFields() {
        let kept: Lines = [
            ("Date", "x"), ("ETag", "\"a\""), ("Vary", "a"), ("Cache-Control", "max-age=1"),
            ("Expires", "0"), ("Content-Location", "/a"), ("Server", "s"), ("Repr-Digest", "z"),
        ]
        let dropped: Lines = [
            ("Content-Type", "text/html"), ("Content-Length", "5"), ("Content-Encoding", "gzip"),
            ("Content-Language", "de"), ("Content-Range", "x"), ("Last-Modified", "y"),
            ("Content-Digest", "z"),
        ]
        let fields = Conditional.notModifiedFields(stored: FieldSection(kept + dropped))
        #expect(fields == FieldSection(kept))
        let dated = Conditional.notModifiedFields(stored: FieldSection([("Last-Modified", "y")]))
        #expect(dated.contains("Last-Modified"))
    }

    @Test("the fields of a 304 read in place are those that are copied, wherever they stand")
    func notModifiedFieldsInPlace() {
        let names = ["ETag", "Content-Type", "Last-Modified", "Server", "Content-Length", "Vary"]
        for seed in 0..<500 {
            // The digits of the seed choose up to four lines, in any order and number.
            let lines = [1, 6, 36, 216].prefix(seed % 5).map { (names[seed / $0 % 6], "\"v\"") }
            let stored = FieldSection(Array(lines))
            var inPlace = FieldSection()
            stored.withUnsafeBytes { encoded in
                Conditional.forEachNotModifiedRun(ofStored: encoded) { run in
                    #expect(!run.isEmpty)
                    inPlace.append(trusted: run)
                }
            }
            #expect(inPlace == Conditional.notModifiedFields(stored: stored))
        }
    }
}
