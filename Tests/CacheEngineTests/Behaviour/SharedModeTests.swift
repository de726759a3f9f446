import CacheEngine
import CacheTestSupport
import Testing

/// H21: which responses a shared cache and a private cache may store.
@Suite struct SharedModeTests {
    struct Row: CustomTestStringConvertible {
        let directives: String
        var request: HeaderFields = [:]
        let shared: Bool
        var `private` = true
        var testDescription: String { "\(directives) \(request.pairs)" }
    }

    static let authorized: HeaderFields = ["Authorization": "Bearer x"]

    static let rows: [Row] = [
        .init(directives: "max-age=60", shared: true),
        .init(directives: "max-age=60, private", shared: false),
        .init(directives: "max-age=60", request: authorized, shared: false),
        .init(directives: "max-age=60, public", request: authorized, shared: true),
        .init(directives: "max-age=60, must-revalidate", request: authorized, shared: true),
        .init(directives: "s-maxage=60", request: authorized, shared: true),
        .init(directives: "max-age=60, no-store", shared: false, private: false),
        .init(directives: "no-store, must-understand, max-age=60", shared: true),
        .init(directives: "max-age=60, private=\"X-User\"", shared: true),
    ]

    @Test("H21: shared and private caches keep different things", arguments: rows)
    func modesDiffer(row: Row) async throws {
        for (mode, isStored) in [
            (HTTPCache.Configuration.Mode.shared, row.shared), (.private, row.private),
        ] {
            let stage = try await Stage(
                ScriptedOrigin(fields: ["Cache-Control": row.directives])
            ) { $0.mode = mode }
            _ = try await stage.get(Stage.url, row.request)
            #expect(try await stage.holds(Stage.url, row.request) == isStored, "\(mode)")
            await stage.end()
        }
    }

    @Test("H21: must-understand keeps nothing of a status that is not understood")
    func mustUnderstand() async throws {
        let origin = ScriptedOrigin(
            status: 299,
            fields: ["Cache-Control": "must-understand, max-age=60"]
        )
        let stage = try await Stage(origin)
        let answer = try await stage.get()
        #expect(answer.info.refusal?.description == "status-not-understood")
        await stage.end()
    }

    @Test("H21, X16: qualified directives keep their fields out of the store, for everyone else")
    func qualifiedDirectivesKeepFieldsOut() async throws {
        let origin = ScriptedOrigin(fields: [
            "Cache-Control": "max-age=60, private=\"X-User\", no-cache=\"Set-Cookie, X-Turn\"",
            "X-User": "ada", "X-Turn": "7", "Set-Cookie": "a=b", "X-Free": "yes",
        ])
        let stage = try await Stage(origin)
        let first = try await stage.get()
        #expect(first.fields["X-User"] == "ada")
        #expect(first.fields["Set-Cookie"] == "a=b")
        let hit = try await stage.get()
        #expect(hit.source == .fresh)
        #expect(hit.fields["X-User"] == nil)
        #expect(hit.fields["X-Turn"] == nil)
        #expect(hit.fields["Set-Cookie"] == nil)
        #expect(hit.fields["X-Free"] == "yes")
        await stage.end()

        let own = try await Stage(origin) { $0.mode = .private }
        _ = try await own.get()
        #expect(try await own.get().fields["X-User"] == "ada")
        await own.end()
    }

    @Test(
        "H21: an answer that sets a cookie is not stored, however public it says it is",
        arguments: ["max-age=60", "public, max-age=60", "s-maxage=60", "public"]
    )
    func answerThatSetsACookieIsNotStored(directives: String) async throws {
        let origin = ScriptedOrigin(fields: [
            "Cache-Control": directives, "Set-Cookie": "id=1", "ETag": "\"1\"",
        ])
        let stage = try await Stage(origin)
        let first = try await stage.get()
        #expect(first.fields["Set-Cookie"] == "id=1")
        #expect(first.info.refusal?.description == "set-cookie")
        #expect(try await stage.holds() == false)
        await stage.end()
        let own = try await Stage(origin) { $0.mode = .private }
        _ = try await own.get()
        #expect(try await own.holds())
        await own.end()
    }

    @Test("H21: what is immutable is not asked for by a plain reload")
    func immutableIgnoresAPlainReload() async throws {
        for (directives, source) in [
            ("max-age=60, immutable", CacheInfo.Source.fresh), ("max-age=60", .revalidated),
        ] {
            let stage = try await Stage(Resource(["Cache-Control": directives]))
            _ = try await stage.get()
            stage.clock.advance(seconds: 10)
            let reload = try await stage.get(Stage.url, ["Cache-Control": "max-age=0"])
            #expect(reload.source == source)
            let forced = try await stage.get(Stage.url, ["Cache-Control": "no-cache"])
            #expect(forced.source == .revalidated)
            await stage.end()
        }
    }

    @Test("H21: CDN-Cache-Control speaks to shared caches alone, and beats Cache-Control")
    func targetedCacheControl() async throws {
        for (targeted, mode, seconds) in [
            ("max-age=600", HTTPCache.Configuration.Mode.shared, 600),
            ("max-age=600", .private, 60),
            ("max-age=\"600", .shared, 60), ("", .shared, 60),
        ] {
            let origin = ScriptedOrigin(fields: [
                "Cache-Control": "max-age=60", "CDN-Cache-Control": targeted,
            ])
            let stage = try await Stage(origin) { $0.mode = mode }
            _ = try await stage.get()
            #expect(try await stage.get().info.remainingSeconds == seconds, "\(targeted)")
            await stage.end()
        }
        let refusing = try await Stage(
            ScriptedOrigin(fields: ["Cache-Control": "max-age=60", "CDN-Cache-Control": "no-store"])
        )
        _ = try await refusing.get()
        #expect(try await refusing.holds() == false)
        await refusing.end()
    }

    @Test("H21: the targeted fields can be named, the most specific first")
    func targetedFieldsCanBeNamed() async throws {
        let origin = ScriptedOrigin(fields: [
            "Cache-Control": "max-age=60", "CDN-Cache-Control": "max-age=600",
            "My-Cache-Control": "max-age=6000",
        ])
        let stage = try await Stage(origin) {
            $0.caching.targetedFields = ["My-Cache-Control", "CDN-Cache-Control"]
        }
        _ = try await stage.get()
        #expect(try await stage.get().info.remainingSeconds == 6_000)
        await stage.end()
    }

    @Test("H21: requests with Authorization never share one fetch in a shared cache")
    func authorizedRequestsAreNotCollapsed() async throws {
        let origin = ScriptedOrigin { request, _ in
            for _ in 0..<100 { await Task.yield() }
            return .whole(
                fields: ["Cache-Control": "max-age=60"],
                body: request.fields["Authorization"] ?? "-"
            )
        }
        let stage = try await Stage(origin)
        let cache = stage.cache
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<20 {
                group.addTask {
                    let request = CacheRequest(
                        url: Stage.url,
                        fields: ["Authorization": "user \(number)"]
                    )
                    let response = try await cache.respond(to: request)
                    #expect(try await response.body.collect().text == "user \(number)")
                }
            }
            try await group.waitForAll()
        }
        #expect(origin.count == 20)
        await stage.end()
    }
}
