import Testing

@testable import HTTPCaching

@Suite("Sending a validation request, RFC 9111 §4.3.1")
struct ConditionalRequestTests {
    private static let tag = ("ETag", "\"a\"")
    private static let modified = ("Last-Modified", Scene.date(-60))

    private static func conditional(
        _ stored: Lines,
        _ request: Lines = [],
        _ validators: Conditional.Validators = .all
    ) -> (fields: FieldSection, isConditional: Bool) {
        var fields = FieldSection(request)
        let isConditional = Conditional.makeConditionalFields(
            stored: FieldSection(stored),
            into: &fields,
            validators: validators
        )
        return (fields, isConditional)
    }

    @Test("Both validators are sent when both are stored")
    func both() {
        let made = Self.conditional([Self.tag, Self.modified], [("Host", "h")])
        #expect(made.isConditional)
        #expect(
            made.fields
                == FieldSection([
                    ("Host", "h"), ("If-None-Match", "\"a\""),
                    ("If-Modified-Since", Scene.date(-60)),
                ])
        )
    }

    @Test("Only the strongest, where asked for")
    func strongest() {
        let made = Self.conditional([Self.tag, Self.modified], [], .strongestOnly)
        #expect(made.fields == FieldSection([("If-None-Match", "\"a\"")]))
        let date = Self.conditional([Self.modified], [], .strongestOnly)
        #expect(date.fields == FieldSection([("If-Modified-Since", Scene.date(-60))]))
    }

    @Test(
        "Validators are echoed byte by byte",
        arguments: [
            "W/\"a\"", "unquoted", "w/\"a\"", "W\"a\"", "\"a,b\\c\"", "\"abcdefü\"",
        ]
    )
    func echoed(_ tag: String) {
        let made = Self.conditional([("ETag", tag)])
        #expect(made.fields == FieldSection([("If-None-Match", tag)]))
    }

    @Test("The client's own conditions and ranges are taken out")
    func ownConditionsAreReplaced() {
        let request: Lines = [
            ("If-None-Match", "\"z\""), ("If-Modified-Since", Scene.date(0)), ("If-Match", "*"),
            ("If-Unmodified-Since", Scene.date(0)), ("If-Range", "\"z\""), ("Range", "bytes=0-1"),
            ("Accept", "text/html"),
        ]
        let made = Self.conditional([Self.tag], request)
        #expect(made.fields == FieldSection([("Accept", "text/html"), ("If-None-Match", "\"a\"")]))
    }

    @Test("Without a usable validator the request is a plain one")
    func withoutValidator() {
        for stored in [
            [], [("ETag", "")], [("Last-Modified", "yesterday")], [("ETag", "a b")],
            [("ETag", "*")],
        ] {
            let made = Self.conditional(stored, [("Host", "h")])
            #expect(!made.isConditional)
            #expect(made.fields == FieldSection([("Host", "h")]))
        }
    }

    @Test("RFC 9110 §13.1.5: a missing part is asked for with a strong validator")
    func rangeRequest() {
        func made(_ lines: Lines) -> FieldSection? {
            let scene = Scene(lines)
            var request = FieldSection([("Range", "bytes=0-"), ("If-Range", "\"old\"")])
            let isMade = Conditional.makeRangeFields(
                stored: scene.responseFields,
                storedFacts: scene.stored,
                missing: 5..<10,
                into: &request
            )
            return isMade ? request : nil
        }
        #expect(made([Self.tag]) == FieldSection([("Range", "bytes=5-9"), ("If-Range", "\"a\"")]))
        let date = FieldSection([("Range", "bytes=5-9"), ("If-Range", Scene.date(-60))])
        #expect(made([Self.modified]) == date)
        #expect(made([("ETag", "W/\"a\"")]) == nil)
        #expect(made([("ETag", "W/\"a\""), Self.modified]) == nil, "No date where there is a tag")
        #expect(made([]) == nil)
    }
}
