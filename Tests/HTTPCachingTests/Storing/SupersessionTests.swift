import Testing

@testable import HTTPCaching

@Suite("The effect of unstored answers on stored ones")
struct SupersessionTests {
    private static func effect(
        _ lines: Lines,
        status: Int = 200,
        method: MethodKind = .get,
        request: Lines = []
    ) -> StoreDecision.Supersession {
        let scene = Scene(lines, status: status, method: method, request: request)
        return StoreDecision.supersession(
            request: scene.request,
            response: scene.response,
            rules: scene.rules,
            receivedAtSeconds: Scene.now
        )
    }

    private static let forbidden: Lines = [("Cache-Control", "no-store")]
    private static let fresh: Lines = [("Cache-Control", "max-age=60"), ("ETag", "\"a\"")]

    @Test("An answer that must not be stored ends the stored one, whatever the request asked")
    func unstorableAnswersEnd() {
        for request in [[], [("Cache-Control", "no-store")]] as [Lines] {
            for status in [200, 203, 206, 301, 404, 410] {
                #expect(Self.effect(Self.forbidden, status: status, request: request) == .ends)
            }
            #expect(Self.effect(Self.forbidden, method: .head, request: request) == .ends)
            let personal: Lines = [("Cache-Control", "max-age=60, private")]
            #expect(Self.effect(personal, request: request) == .ends)
            #expect(Self.effect(Self.fresh + [("Vary", "*")], request: request) == .ends)
        }
    }

    @Test("An answer that only this request keeps from being stored ends another version")
    func unstoredAnswersEndAnotherVersion() {
        for request in [("Cache-Control", "no-store"), ("Authorization", "x")] {
            #expect(Self.effect(Self.fresh, request: [request]) == .endsAnotherVersion)
        }
        // A lifetime that is guessed is not for the response to a cookie.
        let guessed: Lines = [("Last-Modified", Scene.date(-864_000))]
        #expect(Self.effect(guessed, request: [("Cookie", "a=b")]) == .endsAnotherVersion)
        #expect(Self.effect(Self.fresh, method: .head) == .endsAnotherVersion)
        #expect(Self.effect([], method: .head) == .endsAnotherVersion)
        #expect(Self.effect(Self.fresh, status: 304) == .endsAnotherVersion)
        #expect(Self.effect(Self.fresh, status: 206) == .endsAnotherVersion)
    }

    @Test("An error ends nothing, unless the resource is gone")
    func errorsEndNothing() {
        for status in [400, 401, 403, 405, 412, 416, 429, 500, 503] {
            #expect(Self.effect(Self.forbidden, status: status) == .nothing, "\(status)")
        }
    }

    @Test(
        "A validator that differs, or is new, tells of another version",
        arguments: [
            Row("the same tag", (["\"a\"", "-60"], ["\"a\"", "-50"]), false),
            Row("another tag", (["\"a\"", "-60"], ["\"b\"", "-60"]), true),
            Row("a tag that was not there", (["", "-60"], ["\"b\"", "-60"]), true),
            Row("no tag, the same date", (["\"a\"", "-60"], ["", "-60"]), false),
            Row("no tag, another date", (["\"a\"", "-60"], ["", "-50"]), true),
            Row("nothing", (["\"a\"", "-60"], ["", ""]), false),
        ] as [Row<([String], [String]), Bool>]
    )
    func anotherVersion(_ row: Row<([String], [String]), Bool>) {
        let isAnother = Conditional.tellsOfAnotherVersion(
            stored: FieldSection(validators: row.input.0),
            new: FieldSection(validators: row.input.1)
        )
        #expect(isAnother == row.expected)
    }
}
