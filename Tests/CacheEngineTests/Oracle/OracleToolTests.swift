import CacheEngine
import CacheTestSupport
import Testing

/// Tests of the oracle and of its origin.
@Suite struct OracleToolTests {
    private static let clock = TestClock(startSeconds: Moment.start)

    private static func origin() -> OracleOrigin {
        OracleOrigin(clock, validators: .both, cacheControl: "max-age=60", varies: false)
    }

    @Test(
        arguments: [
            (["If-Match": "\"a\""], 200), (["If-Match": "\"b\""], 412), (["If-Match": "*"], 200),
            (["If-None-Match": "W/\"a\""], 304), (["If-None-Match": "\"b\""], 200),
            (["If-Modified-Since": Moment.text(Moment.early)], 200),
            (["If-Modified-Since": Moment.text(Moment.modified(version: 1))], 304),
            (["If-Unmodified-Since": Moment.text(Moment.early)], 412),
            (["If-Match": "\"a\"", "If-Unmodified-Since": Moment.text(Moment.early)], 200),
            (["If-None-Match": "\"b\"", "If-Modified-Since": "never"], 200),
            (["Range": "bytes=2-9"], 206), (["Range": "bytes=90-"], 416),
            (["Range": "bytes=2-9", "If-Range": "\"a\""], 206),
            (["Range": "bytes=2-9", "If-Range": "\"b\""], 200),
            (["Range": "bytes=90-", "If-Range": "\"b\""], 200),
            (["Range": "bytes=2-9", "If-None-Match": "\"a\""], 304),
        ] as [(HeaderFields, Int)]
    )
    func theOriginEvaluatesConditionsAndRangesInTheirOrder(_ fields: HeaderFields, _ status: Int) {
        #expect(Self.origin().reply(to: Asked(.get, fields)).status == status)
    }

    @Test func anUpdateWhosePreconditionFailsIsRefused() {
        let origin = Self.origin()
        #expect(origin.reply(to: Asked(.put, ["If-Match": "\"b\""])).status == 412)
        #expect(origin.reply(to: Asked(.put, ["If-None-Match": "*"])).status == 412)
        #expect(origin.reply(to: Asked(.put, ["If-Match": "\"a\""])).status == 204)
    }

    /// One history, one request, and whether the first version is an allowed response.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var stored: HeaderFields = [:]
        var asked: HeaderFields = [:]
        var ageSeconds: Int64 = 10
        /// The origin's reply on behalf of the request.
        var own: (HeaderFields, OracleOrigin.Conduct)?
        let isAllowed: Bool
    }

    @Test(
        arguments: [
            Case(testDescription: "fresh", isAllowed: true),
            Case(testDescription: "stale", ageSeconds: 60, isAllowed: false),
            Case(
                testDescription: "max-stale",
                asked: ["Cache-Control": "max-stale=5"],
                ageSeconds: 64,
                isAllowed: true
            ),
            Case(
                testDescription: "no-cache",
                asked: ["Cache-Control": "no-cache"],
                isAllowed: false
            ),
            Case(
                testDescription: "no-store when it was stored",
                stored: ["Cache-Control": "no-store"],
                isAllowed: false
            ),
            Case(
                testDescription: "another user's",
                stored: ["Authorization": "Basic cDpx"],
                isAllowed: false
            ),
            Case(
                testDescription: "If-Match of another version, on a fresh one",
                asked: ["If-Match": "\"b\""],
                isAllowed: false
            ),
            Case(
                testDescription: "confirmed",
                ageSeconds: 90,
                own: (["If-None-Match": "\"a\""], .same),
                isAllowed: true
            ),
            Case(
                testDescription: "replaced",
                asked: ["Cache-Control": "no-cache"],
                own: (["If-None-Match": "\"a\""], .new),
                isAllowed: false
            ),
            Case(
                testDescription: "the origin is gone",
                ageSeconds: 90,
                own: (["If-None-Match": "\"a\""], .cut),
                isAllowed: true
            ),
        ]
    )
    func theFirstVersionIsAllowedWhereTheStandardAllowsIt(_ test: Case) {
        let origin = Self.origin()
        func exchange(_ fields: HeaderFields, _ seconds: Int64) -> OriginExchange {
            let asked = Asked(.get, fields)
            return OriginExchange(
                fields: fields,
                asked: asked,
                reply: origin.reply(to: asked),
                atSeconds: seconds
            )
        }
        var exchanges = [exchange(test.stored, Moment.start)]
        let now = Moment.start + test.ageSeconds
        origin.behave(test.own?.1 ?? .new, version: test.own?.1 == .same ? 1 : 2)
        if let own = test.own { exchanges.append(exchange(own.0, now)) }
        let asked = Asked(.get, test.asked)
        let allowed = AllowedAnswers(
            asked: asked,
            nowSeconds: now,
            direct: Reply(status: 404),
            exchanges: exchanges,
            own: 1,
            terms: .init()
        )()
        let reply = OracleOrigin(
            Self.clock,
            validators: .both,
            cacheControl: "",
            varies: false
        ).reply(to: Asked(.get, [:]))
        #expect(allowed.contains(Told(reply)) == test.isAllowed)
    }
}
