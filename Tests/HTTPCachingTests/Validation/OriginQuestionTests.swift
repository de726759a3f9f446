import Testing

@testable import HTTPCaching

@Suite("The question to the origin, RFC 9111 §4.3.1")
struct OriginQuestionTests {
    private static let conditions: Lines = [
        ("If-Match", "\"a\""), ("If-Unmodified-Since", Scene.date(-60)),
        ("If-None-Match", "\"a\""), ("If-Modified-Since", Scene.date(-60)),
    ]
    private static let ranges: [Lines] = [
        [], [("Range", "bytes=2-12")], [("Range", "bytes=2-12"), ("If-Range", "\"a\"")],
        [("Range", "bytes=2-12"), ("If-Range", "\"b\"")], [("Range", "bytes=20-22")],
        [("Range", "bytes=2-4")], [("Range", "bytes=2-4,8-12")],
    ]

    private static func question(
        _ request: Lines,
        _ stored: Scene,
        method: MethodKind = .get
    ) -> OriginQuestion {
        let fields = FieldSection(request)
        var parts: PartialBody?
        if stored.status == 206 {
            var held = PartialBody(bodySize: 26)
            _ = held.add(ContentRange(range: 0..<10, bodySize: 26))
            parts = held
        }
        return OriginQuestion.decide(
            request: fields,
            requestFacts: RequestFacts(method: method, fields: fields),
            stored: stored.responseFields,
            storedFacts: stored.stored,
            parts: parts,
            nowSeconds: Scene.now
        )
    }

    @Test("Every combination of conditions, ranges, methods and stored responses has one question")
    func crossProduct() {
        for mask in 0..<16 {
            let conditions = Self.conditions.enumerated().filter { mask >> $0.offset & 1 == 1 }
                .map(\.element)
            for (index, range) in Self.ranges.enumerated() {
                for method in [MethodKind.get, .head, .post, .patch] {
                    for tag in ["\"a\"", "W/\"a\""] {
                        for status in [200, 206] {
                            let scene = Scene([("ETag", tag)], status: status)
                            let question = Self.question(conditions + range, scene, method: method)
                            let expected: OriginQuestion
                            if mask & 3 != 0 || method.isUnsafe {
                                expected = .asItCame
                            } else if status == 200 {
                                expected = .confirm
                            } else if mask == 0, method == .get, tag.hasPrefix("\""),
                                index == 1 || index == 2
                            {
                                expected = .complete(range: 2..<13, gap: 10..<13)
                            } else {
                                expected = .asItCame
                            }
                            #expect(question == expected, "\(conditions + range) \(method) \(tag)")
                        }
                    }
                }
            }
        }
    }

    @Test("RFC 9110 §13.1.5: without a tag, a strong date tells that a rest is of the same version")
    func dateTellsTheVersion() {
        func question(_ seconds: Int64) -> OriginQuestion {
            let modified = ("Last-Modified", Scene.date(seconds))
            return Self.question([("Range", "bytes=2-12")], Scene([modified], status: 206))
        }
        #expect(question(-60) == .complete(range: 2..<13, gap: 10..<13))
        #expect(question(0) == .asItCame)
    }
}
