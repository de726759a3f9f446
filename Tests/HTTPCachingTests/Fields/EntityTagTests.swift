import Testing

@testable import HTTPCaching

@Suite("Entity tags, RFC 9110 §8.8.3")
struct EntityTagTests {
    private static func form(_ text: String) -> EntityTag.Form? {
        text.withByteRun { EntityTag($0)?.form }
    }

    @Test("Strong, weak, and what is neither")
    func forms() {
        for text in ["\"\"", "\"a\"", "\"a,b\"", "\"a\\b\"", "\"é\"", "\"!#~\""] {
            #expect(Self.form(text) == .strong, "\(text)")
        }
        for text in ["W/\"\"", "W/\"a\""] { #expect(Self.form(text) == .weak, "\(text)") }
        for text in ["a", "w/\"a\"", "W/a", "W\"a\"", "\"a", "a\"", "\"", "\"a\"b\""] {
            #expect(Self.form(text) == .malformed, "\(text)")
        }
        for text in ["", " ", "a b", "a,b", "\"a\", \"b\"", "*", " *"] {
            #expect(Self.form(text) == nil, "\(text)")
        }
    }

    @Test(
        "§8.8.3.2: the table of comparisons",
        arguments: [
            Row("W/\"1\" and W/\"1\"", ("W/\"1\"", "W/\"1\""), (false, true)),
            Row("W/\"1\" and W/\"2\"", ("W/\"1\"", "W/\"2\""), (false, false)),
            Row("W/\"1\" and \"1\"", ("W/\"1\"", "\"1\""), (false, true)),
            Row("\"1\" and \"1\"", ("\"1\"", "\"1\""), (true, true)),
            Row("\"1\" and \"2\"", ("\"1\"", "\"2\""), (false, false)),
            Row("1 and 1", ("1", "1"), (false, true)),
            Row("1 and \"1\"", ("1", "\"1\""), (false, false)),
        ]
    )
    func comparisons(_ row: Row<(String, String), (Bool, Bool)>) {
        row.input.0.withByteRun { one in
            row.input.1.withByteRun { other in
                guard let one = EntityTag(one), let other = EntityTag(other) else {
                    Issue.record("no tag")
                    return
                }
                #expect(one.stronglyEquals(other) == row.expected.0)
                #expect(other.stronglyEquals(one) == row.expected.0)
                #expect(one.weaklyEquals(other) == row.expected.1)
                #expect(other.weaklyEquals(one) == row.expected.1)
            }
        }
    }

    @Test func aListIsReadTagByTag() {
        func tags(_ text: String) -> [String] {
            text.withByteRun { text in
                var scanner = EntityTagScanner(text)
                var tags: [String] = []
                while let tag = scanner.next() { tags.append(tag.opaque.string) }
                return tags
            }
        }
        #expect(tags("\"a\", W/\"b\" ,\"c,d\",, e") == ["a", "b", "c,d", "e"])
        #expect(tags("\"a, \"b\"").isEmpty)
        #expect(tags("").isEmpty)
        #expect(tags("*, \"a\"") == ["a"])
    }
}
