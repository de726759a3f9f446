import CacheEngine
import CacheTestSupport
import Testing

/// H3 to H6: lifetime, age, and heuristic freshness without explicit directives.
@Suite struct FreshnessTests {
    @Test("H3: no-cache is validated always, must-revalidate only when stale")
    func noCacheIsNotMustRevalidate() async throws {
        for (directives, freshSource) in [
            ("max-age=60, no-cache", CacheInfo.Source.revalidated),
            ("max-age=60, must-revalidate", .fresh),
        ] {
            let stage = try await Stage(Resource(["Cache-Control": directives]))
            _ = try await stage.get()
            #expect(try await stage.get().source == freshSource, "\(directives)")
            stage.clock.advance(seconds: 61)
            #expect(try await stage.get().source == .revalidated, "\(directives)")

            stage.clock.advance(seconds: 61)
            stage.origin.cutOff()
            await #expect(throws: CacheError.self, "\(directives) is never served stale") {
                try await stage.get()
            }
            await stage.end()
        }
    }

    @Test("H4: the lifetime that remains is the max-age without the age")
    func remainingLifetimeIsTheMaxAgeWithoutTheAge() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "Age": "10"]
        let stage = try await Stage(ScriptedOrigin(fields: fields))
        let first = try await stage.get().info
        #expect(first.age == nil)
        #expect(first.remainingLifetime == .seconds(50))
        for (waitSeconds, ageSeconds, source) in [
            (0.0, 10, CacheInfo.Source.fresh), (20.0, 30, .fresh), (30.0, 60, .stale),
            (15.0, 75, .stale),
        ] {
            stage.clock.advance(seconds: waitSeconds)
            let info = try await stage.get(policy: .cacheElseLoad).info
            #expect(info.source == source)
            #expect(info.age == .seconds(ageSeconds))
            #expect(info.remainingLifetime == .seconds(60 - ageSeconds))
        }
        await stage.end()
    }

    struct Lifetime: CustomTestStringConvertible {
        let fields: HeaderFields
        var mode = HTTPCache.Configuration.Mode.shared
        /// `nil` if the response must be validated before its first reuse.
        let seconds: Int?
        var testDescription: String { "\(mode) \(fields.pairs)" }
    }

    static let lifetimes: [Lifetime] = [
        .init(fields: ["Cache-Control": "max-age=60, s-maxage=30"], seconds: 30),
        .init(fields: ["Cache-Control": "max-age=60, s-maxage=30"], mode: .private, seconds: 60),
        .init(fields: ["Cache-Control": "max-age=60", "Expires": Stage.date(100)], seconds: 60),
        .init(fields: ["Date": Stage.date(0), "Expires": Stage.date(100)], seconds: 100),
        .init(fields: ["Expires": "Tue, 14 Nov 2023 22:15:00 GMT"], seconds: 100),
        .init(fields: ["Expires": "Tuesday, 14-Nov-23 22:15:00 GMT"], seconds: 100),
        .init(fields: ["Expires": "Tue Nov 14 22:15:00 2023"], seconds: 100),
        .init(fields: ["Expires": "0"], seconds: nil),
        .init(fields: ["Expires": "tomorrow"], seconds: nil),
        .init(fields: ["Expires": "Di, 14 Nov 2023 22:15:00 MEZ"], seconds: nil),
        .init(fields: ["Expires": Stage.date(-1)], seconds: nil),
        .init(
            fields: ["Expires": Stage.date(100), "Last-Modified": Stage.date(-10_000)],
            seconds: 100
        ),
        .init(
            fields: ["Expires": "0", "Last-Modified": Stage.date(-10_000)],
            seconds: nil
        ),
        .init(fields: ["Cache-Control": "max-age=-1"], seconds: nil),
        .init(fields: ["Cache-Control": "MAX-AGE=\"60\""], seconds: 60),
    ]

    @Test("H4: s-maxage, then max-age, then Expires, then a guess", arguments: lifetimes)
    func explicitFreshnessHasAnOrder(row: Lifetime) async throws {
        let stage = try await Stage(Resource(row.fields)) { $0.mode = row.mode }
        _ = try await stage.get()
        let answer = try await stage.get()
        if let seconds = row.seconds {
            #expect(answer.source == .fresh)
            #expect(answer.info.remainingSeconds == seconds)
            stage.clock.advance(seconds: Double(seconds))
            #expect(try await stage.get().source == .revalidated)
        } else {
            #expect(answer.source == .revalidated)
        }
        await stage.end()
    }

    struct Age: CustomTestStringConvertible {
        let age: String?
        let dateSeconds: Int?
        let delaySeconds: Double
        let initialSeconds: Int
        var testDescription: String { "Age \(age ?? "-") Date \(dateSeconds ?? 0)" }
    }

    static let ages: [Age] = [
        .init(age: nil, dateSeconds: nil, delaySeconds: 0, initialSeconds: 0),
        .init(age: "30", dateSeconds: nil, delaySeconds: 0, initialSeconds: 30),
        .init(age: "30", dateSeconds: 0, delaySeconds: 4, initialSeconds: 34),
        .init(age: "30", dateSeconds: -50, delaySeconds: 4, initialSeconds: 54),
        .init(age: nil, dateSeconds: -50, delaySeconds: 0, initialSeconds: 50),
        .init(age: nil, dateSeconds: 50, delaySeconds: 3, initialSeconds: 3),
        .init(age: "0", dateSeconds: 0, delaySeconds: 7, initialSeconds: 7),
    ]

    @Test("H5: age counts Age, Date and the time the response took", arguments: ages)
    func ageIsCalculatedInFull(row: Age) async throws {
        let clock = TestClock()
        let origin = ScriptedOrigin { _, _ in
            clock.advance(seconds: row.delaySeconds)
            var fields: HeaderFields = ["Cache-Control": "max-age=1000"]
            fields["Age"] = row.age
            fields["Date"] = row.dateSeconds.map(Stage.date)
            return .whole(fields: fields, body: "hello")
        }
        let stage = try await Stage(origin, clock: clock)
        _ = try await stage.get()
        for passed in [0, 10, 25] {
            let answer = try await stage.get()
            #expect(answer.info.ageSeconds == row.initialSeconds + passed)
            #expect(answer.fields.values("Age") == [String(row.initialSeconds + passed)])
            clock.advance(seconds: passed == 0 ? 10 : 15)
        }
        await stage.end()
    }

    @Test("H5: every response from the cache has an Age, whatever its kind")
    func everyAnswerFromTheCacheHasAnAge() async throws {
        let stage = try await Stage(Resource())
        _ = try await stage.get()
        stage.clock.advance(seconds: 10)
        var answers = [
            try await stage.get(),
            try await stage.get(Stage.url, ["If-None-Match": "\"1\""]),
            try await stage.get(Stage.url, ["Range": "bytes=0-0"]),
            try await stage.get(Stage.url, ["Range": "bytes=9-"]),
            try await stage.get(method: .head),
        ]
        #expect(answers.map(\.status) == [200, 304, 206, 416, 200])
        stage.clock.advance(seconds: 90)
        answers.append(try await stage.get(policy: .cacheOnly))
        #expect(answers.map { $0.fields["Age"] } == ["10", "10", "10", "10", "10", "100"])
        answers = [try await stage.get()]
        #expect(answers[0].source == .revalidated)
        #expect(answers[0].fields["Age"] == "0")
        await stage.end()
    }

    @Test("H5: the Age of a 304 or of a HEAD is counted and not stored")
    func ageOfAConfirmationIsNotStored() async throws {
        for method in [HTTPMethod.get, .head] {
            let resource = Resource()
            let stage = try await Stage(resource)
            _ = try await stage.get()
            resource.change(fields: ["Cache-Control": "max-age=60", "Age": "30"])
            stage.clock.advance(seconds: 61)
            let confirmed = try await stage.get(method: method)
            #expect(confirmed.source == .revalidated)
            #expect(confirmed.fields.values("Age") == ["30"])
            stage.clock.advance(seconds: 15)
            let hit = try await stage.get()
            #expect(hit.source == .fresh)
            #expect(hit.fields.values("Age") == ["45"])
            await stage.end()
        }
    }

    @Test(
        "H6: without freshness information a tenth of the age at Date is guessed, and a day at most",
        arguments: [(200, 1_000, 100), (200, 100_000_000, 86_400), (404, 1_000, 100)]
    )
    func lifetimeIsGuessedFromLastModified(
        status: Int,
        modifiedBeforeSeconds: Int,
        seconds: Int
    ) async throws {
        let origin = ScriptedOrigin(
            status: status,
            fields: [
                "Date": Stage.date(0), "Last-Modified": Stage.date(-modifiedBeforeSeconds),
            ]
        )
        let stage = try await Stage(origin)
        _ = try await stage.get()
        let answer = try await stage.get()
        #expect(answer.source == .fresh)
        #expect(answer.info.remainingSeconds == seconds)
        await stage.end()
    }

    @Test("H6: nothing is guessed for other statuses, without Last-Modified, or switched off")
    func nothingIsGuessedWhereItMustNot() async throws {
        let modified: HeaderFields = ["Last-Modified": Stage.date(-1_000)]
        for (status, fields, guesses) in [
            (302, modified, true), (500, modified, true), (200, modified, false),
            (200, ["ETag": "\"1\""] as HeaderFields, true),
        ] {
            let origin = ScriptedOrigin(status: status, fields: fields)
            let stage = try await Stage(origin) {
                if !guesses { $0.caching.heuristic = nil }
            }
            _ = try await stage.get()
            _ = try await stage.get()
            #expect(stage.origin.count == 2, "\(status) \(fields.pairs)")
            let isConditional = fields.contains("ETag") || !guesses
            let second = stage.origin.requests[1].fields
            #expect(second.isEmpty == !isConditional, "\(status) \(fields.pairs)")
            await stage.end()
        }
    }
}
