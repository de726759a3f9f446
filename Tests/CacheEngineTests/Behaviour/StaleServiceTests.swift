import CacheEngine
import CacheTestSupport
import Testing

/// H20: when a stale response may be served, and which directives of the client decide it.
@Suite struct StaleServiceTests {
    enum Trouble: String, CaseIterable, Sendable {
        case s500, s502, s503, s504, s501, s404, unreachable

        var status: Int? { Int(rawValue.dropFirst()) }
    }

    static func begin(
        _ directives: String,
        ageSeconds: Double,
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws -> Stage {
        let stage = try await Stage(Resource(["Cache-Control": directives]), change)
        _ = try await stage.get()
        stage.clock.advance(seconds: ageSeconds)
        return stage
    }

    static func meet(_ trouble: Trouble, _ stage: Stage) {
        if let status = trouble.status {
            stage.origin.follow { _, _ in .whole(status: status, body: "trouble") }
        } else {
            stage.origin.cutOff()
        }
    }

    @Test("H20: within stale-while-revalidate it is served at once and refreshed afterwards")
    func staleResponseIsServedWhileItIsRevalidated() async throws {
        let stage = try await Self.begin("max-age=60, stale-while-revalidate=30", ageSeconds: 89)
        let stale = try await stage.get()
        #expect(stale.source == .stale)
        #expect(stale.fields["Age"] == "89")
        #expect(stage.origin.count == 2)
        #expect(stage.origin.requests[1].fields["If-None-Match"] == "\"1\"")
        #expect(try await stage.get().source == .fresh)

        stage.clock.advance(seconds: 90)
        #expect(try await stage.get().source == .revalidated, "The window is over")
        await stage.end()
    }

    @Test("H20: the cache may have a window of its own for responses that bring none")
    func configuredStaleWindowApplies() async throws {
        let stage = try await Self.begin("max-age=60", ageSeconds: 100) {
            $0.caching.staleWhileRevalidate = .seconds(50)
        }
        #expect(try await stage.get().source == .stale)
        await stage.end()
    }

    @Test(
        "H20: within stale-if-error it stands in for these failures only",
        arguments: Trouble.allCases
    )
    func staleIfError(trouble: Trouble) async throws {
        let stage = try await Self.begin("max-age=60, stale-if-error=100", ageSeconds: 150)
        Self.meet(trouble, stage)
        let answer = try await stage.get()
        switch trouble {
        case .s404, .s501:
            #expect(answer.status == trouble.status)
            #expect(answer.source == .origin)
        default:
            #expect(answer.status == 200)
            #expect(answer.body == "one")
            #expect(answer.source == .fallback)
            #expect(answer.info.isStale)
            #expect(answer.info.originStatus == trouble.status)
            #expect((answer.info.fallbackError != nil) == (trouble == .unreachable))
        }
        await stage.end()
    }

    @Test("H20: past its window an error is passed on, and the stored response stays")
    func staleIfErrorEnds() async throws {
        let stage = try await Self.begin("max-age=60, stale-if-error=100", ageSeconds: 161)
        Self.meet(.s503, stage)
        #expect(try await stage.get().status == 503)
        #expect(try await stage.holds())
        await stage.end()
    }

    @Test("H20: without an origin, a stale response serves for a day unless told otherwise")
    func staleOnDisconnect() async throws {
        for (ageSeconds, isServed) in [(60.0 + 86_399, true), (60 + 86_401, false)] {
            let stage = try await Self.begin("max-age=60", ageSeconds: ageSeconds)
            stage.origin.cutOff()
            if isServed {
                #expect(try await stage.get().source == .fallback)
            } else {
                await #expect(throws: CacheError.self) { try await stage.get() }
            }
            await stage.end()
        }
    }

    @Test(
        "H20: must-revalidate, proxy-revalidate, s-maxage and no-cache forbid stale answers",
        arguments: [
            ("must-revalidate, max-age=60", HTTPCache.Configuration.Mode.shared, false),
            ("must-revalidate, max-age=60", .private, false),
            ("proxy-revalidate, max-age=60", .shared, false),
            ("proxy-revalidate, max-age=60", .private, true),
            ("s-maxage=60", .shared, false), ("s-maxage=60, max-age=60", .private, true),
            ("no-cache, max-age=60", .shared, false), ("max-age=60", .shared, true),
        ]
    )
    func staleIsForbidden(directives: String, mode: HTTPCache.Configuration.Mode, isServed: Bool)
        async throws
    {
        let windows = ", stale-while-revalidate=1000, stale-if-error=1000"
        let stage = try await Self.begin(directives + windows, ageSeconds: 100) { $0.mode = mode }
        stage.origin.cutOff()
        if isServed {
            #expect(try await stage.get().source == .stale)
        } else {
            await #expect(throws: CacheError.self) { try await stage.get() }
            await #expect(throws: CacheError.self) {
                try await stage.get(Stage.url, ["Cache-Control": "max-stale"])
            }
        }
        await stage.end()
    }

    struct Wish: CustomTestStringConvertible {
        let wish: String
        let ageSeconds: Double
        /// `nil` stands for a 504.
        let source: CacheInfo.Source?
        var testDescription: String { "\(wish) at \(ageSeconds) s" }
    }

    static let wishes: [Wish] = [
        .init(wish: "max-stale", ageSeconds: 1_000, source: .stale),
        .init(wish: "max-stale=20", ageSeconds: 80, source: .stale),
        .init(wish: "max-stale=20", ageSeconds: 81, source: .revalidated),
        .init(wish: "max-stale=20", ageSeconds: 50, source: .fresh),
        .init(wish: "min-fresh=20", ageSeconds: 40, source: .fresh),
        .init(wish: "min-fresh=20", ageSeconds: 41, source: .revalidated),
        .init(wish: "max-age=10", ageSeconds: 10, source: .fresh),
        .init(wish: "max-age=10", ageSeconds: 11, source: .revalidated),
        .init(wish: "max-age=0", ageSeconds: 1, source: .revalidated),
        .init(wish: "no-cache", ageSeconds: 0, source: .revalidated),
        .init(wish: "only-if-cached", ageSeconds: 59, source: .fresh),
        .init(wish: "only-if-cached", ageSeconds: 60, source: nil),
        .init(wish: "only-if-cached, max-stale", ageSeconds: 600, source: .stale),
        .init(wish: "no-store", ageSeconds: 0, source: .origin),
    ]

    @Test("H20: the client's own wishes are honoured", arguments: wishes)
    func requestDirectivesAreHonoured(row: Wish) async throws {
        let stage = try await Self.begin("max-age=60", ageSeconds: row.ageSeconds)
        let answer = try await stage.get(Stage.url, ["Cache-Control": row.wish])
        if let source = row.source {
            #expect(answer.status == 200)
            #expect(answer.source == source)
        } else {
            #expect(answer.status == 504)
            #expect(answer.source == .generated)
        }
        await stage.end()
    }

    @Test("H20: Pragma: no-cache counts where there is no Cache-Control")
    func pragmaCounts() async throws {
        let stage = try await Self.begin("max-age=60", ageSeconds: 0)
        #expect(try await stage.get(Stage.url, ["Pragma": "no-cache"]).source == .revalidated)
        let both: HeaderFields = ["Pragma": "no-cache", "Cache-Control": "max-age=60"]
        #expect(try await stage.get(Stage.url, both).source == .fresh)
        await stage.end()
    }

    @Test("H20: a cache may be told not to listen to clients")
    func requestDirectivesMayBeIgnored() async throws {
        let stage = try await Self.begin("max-age=60", ageSeconds: 10) {
            $0.caching.requestDirectives = .ignore
        }
        for wish in ["no-cache", "max-age=0", "no-store", "min-fresh=1000"] {
            #expect(
                try await stage.get(Stage.url, ["Cache-Control": wish]).source == .fresh,
                "\(wish)"
            )
        }
        #expect(stage.origin.count == 1)
        await stage.end()
    }

    @Test("H20: what clients may not demand is collapsed, stored and freshened as usual")
    func ignoredNoStoreIsStoredAndFreshened() async throws {
        let resource = Resource()
        let stage = try await Stage(resource) { $0.caching.requestDirectives = .ignore }
        let wish: HeaderFields = ["Cache-Control": "no-store"]
        async let first = stage.get(Stage.url, wish)
        async let second = stage.get(Stage.url, wish)
        #expect(try await [first.body, second.body] == ["one", "one"])
        #expect(stage.origin.count == 1)
        stage.clock.advance(seconds: 61)
        #expect(try await stage.get(Stage.url, wish).source == .revalidated)
        #expect(try await stage.get().source == .fresh)
        await stage.end()
    }

    @Test("H20: an error nobody may be spared is not stored in place of the response")
    func errorDoesNotReplaceTheAnswer() async throws {
        let stage = try await Self.begin("max-age=60", ageSeconds: 61)
        Self.meet(.s500, stage)
        #expect(try await stage.get().status == 500)
        #expect(try await stage.get(policy: .cacheOnly).body == "one")
        await stage.end()
    }

    @Test("H20: a hit may also refresh ahead, off unless asked for")
    func refreshAheadIsOffUnlessAskedFor() async throws {
        for share in [nil, 0.8] {
            let stage = try await Self.begin("max-age=100", ageSeconds: 79) {
                $0.caching.refreshAheadShare = share
            }
            #expect(try await stage.get().source == .fresh)
            #expect(stage.origin.count == 1)
            stage.clock.advance(seconds: 1)
            // A policy that forbids loading also forbids a background refresh.
            #expect(try await stage.get(policy: .cacheOnly).source == .fresh)
            #expect(stage.origin.count == 1)
            #expect(try await stage.get().source == .fresh)
            #expect(stage.origin.count == (share == nil ? 1 : 2))
            await stage.end()
        }
    }
}
