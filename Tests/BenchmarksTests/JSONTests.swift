import Benchmarks
import Testing

@Suite struct JSONTests {
    @Test func writtenJSONIsReadBack() throws {
        let value = JSONValue.object(of: [
            ("text", .string("quote \" backslash \\ line\nbreak \u{1} é 😀")),
            ("numbers", .array([.number(0), .number(-1.5), .number(1e300), .number(123_456_789)])),
            (
                "nested",
                .object(of: [("empty", .array([])), ("none", .null), ("yes", .bool(true))])
            ),
            ("left out", nil),
        ])
        #expect(try JSONValue(parsing: value.encoded) == value)
    }

    @Test(arguments: [
        (#"{"a":[1,2.5e3,-0]}"#, #"{"a":[1,2500,0]}"#),
        (#" [ true , false , null ] "#, "[true,false,null]"),
        (#""\u00e9\ud83d\ude00\n\/""#, "\"é😀\\n/\""),
    ])
    func differentSpellingsMeanTheSame(text: String, plain: String) throws {
        #expect(try JSONValue(parsing: text) == JSONValue(parsing: plain))
    }

    @Test(arguments: [
        "", "{", "[1,]", "{\"a\"}", "{\"a\":1,}", "nul", "\"open", "\"\\x\"", "1 2", "+1", ".5",
        "\"\\ud800\"", "\"tab\there\"", "[1e999]", "{a:1}", "\"\\u12g4\"", "--1",
    ])
    func invalidJSONIsRefused(text: String) {
        #expect(throws: JSONError.self) { try JSONValue(parsing: text) }
    }

    @Test func depthIsBounded() {
        let deep = String(repeating: "[", count: 100_000)
        #expect(throws: JSONError.self) { try JSONValue(parsing: deep) }
    }

    @Test func everyTruncationIsRefusedNotTrapped() {
        let text = Array(#"{"a": [1, "b\u00e9", {"c": true}], "d": -1.5e3}"#.utf8)
        for count in 0..<text.count {
            let part = String(decoding: text[..<count], as: UTF8.self)
            #expect(throws: JSONError.self) { try JSONValue(parsing: part) }
        }
    }
}
