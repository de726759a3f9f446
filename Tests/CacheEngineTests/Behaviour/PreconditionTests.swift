import CacheEngine
import CacheTestSupport
import Testing

/// A client's preconditions and ranges, on a URL in every state.
///
/// Each response must be one that the origin gives now, or gave for a response that is stored and
/// fresh.
@Suite struct PreconditionTests {
    enum State: String, CaseIterable, Sendable { case absent, fresh, stale, partial, variant }

    /// The parts of a response that preconditions decide.
    struct Told: Hashable, Sendable {
        var status: Int
        var tag: String?
        var contentRange: String?
        var body = ""
    }

    /// One version of the resource, served by RFC 9110 §13.2.2 without a cache.
    struct Version: Hashable, Sendable {
        let tag: String
        /// Seconds relative to the start of the clock.
        let modified: Int
        let body: String

        static let old = Version(tag: "\"1\"", modified: -1_000, body: RangeTests.alphabet)
        static let new = Version(
            tag: "\"2\"",
            modified: -10,
            body: RangeTests.alphabet.uppercased() + "0123"
        )

        func told(_ method: HTTPMethod, _ fields: HeaderFields) -> Told {
            func since(_ name: String) -> Int? {
                [-2_000, -1_000, -10, 0].first { fields[name] == Stage.date($0) }
            }
            if let wanted = fields["If-Match"] {
                if wanted != "*", wanted != tag { return Told(status: 412) }
            } else if let limit = since("If-Unmodified-Since"), modified > limit {
                return Told(status: 412)
            }
            if let unwanted = fields["If-None-Match"] {
                if unwanted == "*" || unwanted == tag { return Told(status: 304, tag: tag) }
            } else if let limit = since("If-Modified-Since"), modified <= limit {
                return Told(status: 304, tag: tag)
            }
            let whole = Told(status: 200, tag: tag, body: method == .head ? "" : body)
            guard method == .get, let range = fields["Range"] else { return whole }
            if let validator = fields["If-Range"], validator != tag,
                validator != Stage.date(modified)
            {
                return whole
            }
            return part(range) ?? Told(status: 416)
        }

        private func part(_ range: String) -> Told? {
            let bounds = range.dropFirst(6).split(separator: "-").compactMap { Int($0) }
            guard bounds[0] < body.count else { return nil }
            let last = min(bounds[1], body.count - 1)
            return Told(
                status: 206,
                tag: tag,
                contentRange: "bytes \(bounds[0])-\(last)/\(body.count)",
                body: String(Array(body)[bounds[0]...last])
            )
        }

        func answer(_ request: OriginRequest) -> OriginResponse {
            let told = told(request.method, request.fields)
            var fields: HeaderFields = ["Date": Stage.date(0)]
            if told.status < 400 {
                fields["Cache-Control"] = "max-age=60"
                fields["ETag"] = tag
                fields["Last-Modified"] = Stage.date(modified)
                if request.url.hasSuffix("/variant") { fields["Vary"] = "X-A" }
            }
            if told.status == 304 { return OriginResponse(status: 304, fields: fields) }
            fields["Content-Range"] = told.contentRange
            if request.method == .head {
                fields["Content-Length"] = String(body.utf8.count)
                return OriginResponse(status: told.status, fields: fields)
            }
            return .whole(status: told.status, fields: fields, body: told.body)
        }
    }

    static let conditions: [HeaderFields] = {
        let tags = ["\"1\"", "\"2\"", "\"3\"", "*"]
        let dates = [-2_000, -1_000, -10, 0].map { Stage.date($0) }
        var conditions: [HeaderFields] = [[:]]
        for tag in tags {
            conditions += [["If-Match": tag], ["If-None-Match": tag]]
            for other in tags { conditions.append(["If-Match": tag, "If-None-Match": other]) }
            for date in dates {
                conditions.append(["If-Match": tag, "If-Modified-Since": date])
                conditions.append(["If-None-Match": tag, "If-Modified-Since": date])
                conditions.append(["If-None-Match": tag, "If-Unmodified-Since": date])
            }
        }
        for date in dates {
            conditions += [["If-Modified-Since": date], ["If-Unmodified-Since": date]]
        }
        return conditions
    }()

    static let ranges: [HeaderFields] = [
        [:], ["Range": "bytes=2-4"], ["Range": "bytes=5-15"], ["Range": "bytes=90-99"],
        ["Range": "bytes=2-4", "If-Range": "\"1\""], ["Range": "bytes=2-4", "If-Range": "\"2\""],
        ["Range": "bytes=5-15", "If-Range": "\"1\""],
        ["Range": "bytes=2-4", "If-Range": Stage.date(-1_000)],
    ]

    @Test(
        "What a client's preconditions ask is answered as the origin would",
        arguments: State.allCases,
        [Version.old, .new]
    )
    func preconditionsAreAnsweredAsTheOriginWould(state: State, now: Version) async throws {
        let cases = Self.conditions.flatMap { condition in
            Self.ranges.flatMap { range in
                [HTTPMethod.get, .head].map { (method: $0, fields: condition.adding(range)) }
            }
        }
        let stage = try await Stage(ScriptedOrigin { request, _ in Version.old.answer(request) })
        func url(_ index: Int) -> String { "http://h/\(index)/\(state)" }
        for index in cases.indices where state != .absent {
            let range: HeaderFields = state == .partial ? ["Range": "bytes=0-9"] : [:]
            _ = try await stage.get(url(index), range)
        }
        if state == .stale { stage.clock.advance(seconds: 61) }
        stage.origin.follow { request, _ in now.answer(request) }
        for (index, row) in cases.enumerated() {
            let answer = try await stage.get(url(index), row.fields, method: row.method)
            let told = Told(
                status: answer.status,
                tag: answer.status < 400 ? answer.fields["ETag"] : nil,
                contentRange: answer.status == 206 ? answer.fields["Content-Range"] : nil,
                body: answer.status < 400 ? answer.body : ""
            )
            let allowed = Self.allowed(state, now, row.method, row.fields)
            #expect(allowed.contains(told), "\(row.method) \(row.fields.pairs): \(told)")
        }
        await stage.end()
    }

    /// The responses of the current version, and of the old one if it is fresh.
    ///
    /// A range may be ignored.
    private static func allowed(
        _ state: State,
        _ now: Version,
        _ method: HTTPMethod,
        _ fields: HeaderFields
    ) -> Set<Told> {
        let isForOrigins = fields.contains("If-Match") || fields.contains("If-Unmodified-Since")
        let mayBeOld = !isForOrigins && state != .absent && state != .stale
        var allowed: Set<Told> = []
        for version in mayBeOld ? [now, .old] : [now] {
            allowed.insert(version.told(method, fields))
            var unranged = fields
            unranged["Range"] = nil
            allowed.insert(version.told(method, unranged))
        }
        return allowed
    }

    @Test("A ranged download that is continued with If-Match goes on, or learns of the change")
    func downloadContinuedWithIfMatch() async throws {
        for now in [Version.old, .new] {
            let stage = try await Stage(
                ScriptedOrigin { request, _ in Version.old.answer(request) }
            )
            _ = try await stage.get()
            stage.origin.follow { request, _ in now.answer(request) }
            let wish: HeaderFields = ["If-Match": "\"1\"", "Range": "bytes=20-25"]
            let answer = try await stage.get(Stage.url, wish)
            #expect(answer.status == (now == .old ? 206 : 412))
            if now == .old { #expect(answer.body == "uvwxyz") }
            #expect(stage.origin.requests.last?.fields["If-Match"] == "\"1\"")
            #expect(stage.origin.requests.last?.fields["If-None-Match"] == nil)
            await stage.end()
        }
    }

    @Test("A precondition that is for origins is no reason to ask one that must not be asked")
    func onlyIfCachedSendsNoRequest() async throws {
        let stage = try await Stage(ScriptedOrigin { request, _ in Version.old.answer(request) })
        _ = try await stage.get()
        let wish: HeaderFields = ["If-Match": "\"1\"", "Cache-Control": "only-if-cached"]
        #expect(try await stage.get(Stage.url, wish).status == 504)
        #expect(stage.origin.count == 1)
        await stage.end()
    }

    @Test("A changed response that is not stored is a 304 to a client that has it")
    func unstoredAnswerIsHeldAgainstTheClientsCondition() async throws {
        let stage = try await Stage.afterUnstorableChange()
        let answer = try await stage.get(Stage.url, ["If-None-Match": "\"2\""])
        #expect(answer.status == 304)
        #expect(answer.body.isEmpty)
        await stage.end()
    }

    /// Responses without Last-Modified that are not stored: because of the directive, and because of
    /// the number of tags, which leaves the body to all that wait.
    static let undated: [HeaderFields] = [
        ["Cache-Control": "no-store", "Date": Stage.date(0)],
        ["Cache-Control": "no-store"],
        [
            "Cache-Control": "max-age=60", "Date": Stage.date(0),
            "Cache-Tag": (0..<257).map { "tag\($0)" }.joined(separator: ", "),
        ],
    ]

    @Test(
        "If-Modified-Since is ignored for an answer without Last-Modified that is not stored",
        arguments: [CachingRules.ConditionMiss.forwarded, .whole],
        undated
    )
    func dateOfAnUnstoredAnswerIsNoModification(
        conditionMiss: CachingRules.ConditionMiss,
        fields: HeaderFields
    ) async throws {
        let stage = try await Stage(ScriptedOrigin(fields: fields)) {
            $0.mode = .shared
            $0.caching.conditionMiss = conditionMiss
        }
        for _ in 1...2 {
            let wish: HeaderFields = ["If-Modified-Since": Stage.date(5)]
            let answer = try await stage.get(Stage.url, wish)
            #expect(answer.status == 200 && answer.body == "hello")
        }
        await stage.end()
    }

    @Test("If-Modified-Since against a response without Last-Modified is evaluated by its Date")
    func dateStandsInForLastModified() async throws {
        let stage = try await Stage(
            ScriptedOrigin(fields: ["Cache-Control": "max-age=600", "Date": Stage.date(-10)])
        )
        _ = try await stage.get()
        for (seconds, status) in [(-11, 200), (-10, 304), (5, 304), (1_000, 304)] {
            let wish: HeaderFields = ["If-Modified-Since": Stage.date(seconds)]
            #expect(try await stage.get(Stage.url, wish).status == status, "\(seconds)")
        }
        #expect(stage.origin.count == 1)
        await stage.end()
    }
}

extension HeaderFields {
    fileprivate func adding(_ others: HeaderFields) -> HeaderFields {
        var fields = self
        for (name, value) in others.pairs { fields[name] = value }
        return fields
    }
}
