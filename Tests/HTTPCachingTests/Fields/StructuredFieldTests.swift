import Testing

@testable import HTTPCaching

@Suite("Structured dictionaries, RFC 9651 §4.2")
struct StructuredFieldTests {
    /// The members as text; `nil` if the field is malformed.
    private static func parse(_ text: String) -> [String]? {
        text.withByteRun { text in
            var dictionary = StructuredDictionary(text)
            var members: [String] = []
            while true {
                switch dictionary.next() {
                case .end: return members
                case .malformed: return nil
                case .member(let member):
                    members.append(member.key.string + "=" + describe(member.value))
                }
            }
        }
    }

    private static func describe(_ value: StructuredDictionary.Value) -> String {
        switch value {
        case .boolean(let isTrue): isTrue ? "true" : "false"
        case .integer(let number): String(number)
        case .string(let text): "'\(text.string)'"
        case .token(let text): text.string
        case .other: "other"
        }
    }

    @Test(
        "What is a dictionary",
        arguments: [
            Row("empty", "", []),
            Row("spaces", "   ", []),
            Row("booleans", "a, b=?1, c=?0", ["a=true", "b=true", "c=false"]),
            Row("integers", "a=0, b=-5, c=999999999999999", ["a=0", "b=-5", "c=999999999999999"]),
            Row("decimals", "a=1.5, b=-123456789012.123", ["a=other", "b=other"]),
            Row("strings", "a=\"\", b=\"x, \\\"y\\\\\"", ["a=''", "b='x, \\\"y\\\\'"]),
            Row("tokens", "a=foo, b=*a/b:c", ["a=foo", "b=*a/b:c"]),
            Row(
                "bytes, dates, texts",
                "a=:aGk=:, b=@1659578233, c=%\"f%c3%bc\"",
                ["a=other", "b=other", "c=other"]
            ),
            Row("inner lists", "a=(), b=(1 \"x\";p=1  c);q", ["a=other", "b=other"]),
            Row("parameters", "a=1;b;c=\"d\"; e=?0, f;g=1", ["a=1", "f=true"]),
            Row("tabs between members", "a\t,\tb", ["a=true", "b=true"]),
            Row("keys", "*a-b_c.d*=1, z9", ["*a-b_c.d*=1", "z9=true"]),
        ]
    )
    func sound(_ row: Row<String, [String]>) {
        #expect(Self.parse(row.input) == row.expected)
    }

    @Test(
        "What is none",
        arguments: [
            "A=1", "1a", "a=", "a=,b", "a,", "a,,b", ",a", "a b", "a =1", "a= 1", "a=\"x",
            "a=\"\\x\"",
            "a=\"é\"", "a=?2", "a=?", "a=--1", "a=1234567890123456", "a=1.", "a=1.2345",
            "a=1234567890123.1", "a=:x", "a=:!:", "a=@1.5", "a=@x", "a=%\"x", "a=%\"%C3\"", "a=%x",
            "a=(1", "a=(1,2)", "a=(1 2", "a=((1))", "a;", "a;=1", "a;B", "a=1;b=", "&&&", "a=&",
            "\u{1}",
        ]
    )
    func malformed(_ text: String) {
        #expect(Self.parse(text) == nil)
    }
}
