import CacheEngine
import CacheTestSupport
import Testing

/// H15: the responses that an unsafe request invalidates.
@Suite struct InvalidationTests {
    struct Row: CustomTestStringConvertible {
        var method = HTTPMethod.post
        var status = 200
        var fields: HeaderFields = [:]
        /// Those of `paths` that are invalidated besides the target.
        let gone: Set<String>
        var testDescription: String { "\(method) \(status) \(fields.pairs)" }
    }

    static let target = "http://example.com/a"
    static let neighbour = "http://example.com/b?x"
    static let foreign = "http://example.org/b?x"

    static let rows: [Row] = [
        .init(method: .post, gone: [target]),
        .init(method: .put, status: 204, gone: [target]),
        .init(method: .delete, gone: [target]),
        .init(method: .patch, status: 303, gone: [target]),
        .init(method: "FROBNICATE", gone: [target]),
        .init(method: .get, gone: []),
        .init(method: .head, gone: []),
        .init(method: .options, gone: []),
        .init(method: .query, gone: []),
        .init(method: .post, status: 404, gone: []),
        .init(method: .post, status: 500, gone: []),
        .init(fields: ["Location": neighbour], gone: [target, neighbour]),
        .init(fields: ["Content-Location": "/b?x"], gone: [target, neighbour]),
        .init(fields: ["Location": "b?x#there"], gone: [target, neighbour]),
        .init(fields: ["Location": foreign], gone: [target]),
        .init(status: 404, fields: ["Location": neighbour], gone: []),
    ]

    @Test("H15: unsafe methods invalidate target, Location and Content-Location", arguments: rows)
    func unsafeMethodsInvalidate(row: Row) async throws {
        let stage = try await Stage()
        let all = [Self.target, Self.neighbour, Self.foreign]
        for url in all { _ = try await stage.get(url) }
        stage.origin.follow { _, _ in .whole(status: row.status, fields: row.fields) }
        _ = try await stage.get(Self.target, method: row.method)
        for url in all {
            #expect(try await stage.holds(url) == !row.gone.contains(url), "\(url)")
        }
        #expect(await stage.cache.statistics.invalidations == row.gone.count)
        await stage.end()
    }

    @Test(
        "H15: a key of the caller's own keeps no unsafe request from the origin",
        arguments: [HTTPMethod.put, .patch, .delete, "FROBNICATE"],
        [false, true]
    )
    func keyedUnsafeRequestIsForwarded(method: HTTPMethod, isStored: Bool) async throws {
        let stage = try await Stage()
        let options = RequestOptions(key: "mine")
        let get = CacheRequest(url: Self.target, options: options)
        if isStored { _ = try await stage.send(get) }
        _ = try await stage.get(Self.target)
        let before = stage.origin.count
        let change = CacheRequest(method: method, url: Self.target, options: options)
        #expect(try await stage.send(change).source == .origin)
        #expect(stage.origin.count == before + 1)
        // Neither the old response nor that to the change answers a later GET.
        #expect(try await stage.cache.storedResponse(for: get) == nil)
        #expect(try await stage.holds(Self.target) == false)
        await stage.end()
    }

    @Test("H15: a response to an unsafe request invalidates though the caller has left")
    func changeWhoseCallerLeftInvalidates() async throws {
        let scene = try await FlightScene(cancellation: .ignored)
        _ = await scene.crowd(1)
        try await scene.answer(0)
        let change = try #require(await scene.crowd(1, .page.with { $0.method = .put }).first)
        change.cancel()
        await scene.world.settle()
        #expect(change.error is CancellationError)
        try await scene.answer(1, status: 204, fields: [:], body: "")
        _ = await scene.crowd(1)
        #expect(scene.origin.count == 3)
        try await scene.answer(2)
        await scene.close()
    }

    @Test("H15: an unsafe request that fails takes no stored response for its own")
    func keyedUnsafeRequestGetsTheError() async throws {
        let stage = try await Stage { $0.caching.staleIfError = .seconds(600) }
        let options = RequestOptions(key: "mine")
        let get = CacheRequest(url: Self.target, options: options)
        _ = try await stage.send(get)
        stage.origin.follow { _, _ in throw CacheError(.originUnreachable, detail: "gone") }
        let change = CacheRequest(method: .put, url: Self.target, options: options)
        await #expect(throws: CacheError.self) { _ = try await stage.send(change) }
        #expect(try await stage.cache.storedResponse(for: get) != nil)
        await stage.end()
    }

    @Test("H15: the hook is asked for the key of the GET that is invalidated")
    func hookNamesTheEntryThatGoes() async throws {
        let stage = try await Stage {
            $0.hooks.key = { $0.method == .get ? "one for all" : nil }
        }
        _ = try await stage.get(Self.target)
        _ = try await stage.get(Self.target, method: .delete)
        #expect(try await stage.holds(Self.target) == false)
        await stage.end()
    }

    @Test(
        "H15: the target goes, also if a URI reference writes it otherwise than a key does",
        arguments: ["http://example.com/\u{301}a", "http://example.com\u{C9}/a"]
    )
    func targetOfAnotherFormIsInvalidated(url: String) async throws {
        let stage = try await Stage()
        _ = try await stage.get(url)
        #expect(try await stage.holds(url))
        _ = try await stage.get(url, method: .put)
        #expect(try await stage.holds(url) == false)
        #expect(await stage.cache.statistics.invalidations == 1)
        await stage.end()
    }

    @Test("H15: all variants of the target go")
    func invalidationTakesAllVariants() async throws {
        let origin = ScriptedOrigin(fields: ["Cache-Control": "max-age=60", "Vary": "Accept"])
        let stage = try await Stage(origin)
        for type in ["text/plain", "text/html"] {
            _ = try await stage.get(Stage.url, ["Accept": type])
        }
        _ = try await stage.get(method: .delete)
        for type in ["text/plain", "text/html"] {
            #expect(try await stage.holds(Stage.url, ["Accept": type]) == false)
        }
        await stage.end()
    }

    @Test("H15: a fetch that began before an unsafe request does not bring the old response back")
    func fetchUnderWayDoesNotUndoAnInvalidation() async throws {
        let body = ManualBody()
        let origin = ScriptedOrigin { request, _ in
            guard request.method == .get else { return OriginResponse(status: 204) }
            return OriginResponse(
                status: 200,
                fields: ["Cache-Control": "max-age=60"],
                body: body.stream()
            )
        }
        let stage = try await Stage(origin)
        let response = try await stage.cache.respond(to: CacheRequest(url: Stage.url))
        body.feed("old")
        _ = try await stage.cache.respond(to: CacheRequest(method: .put, url: Stage.url))
        body.finish()
        #expect(try await response.body.collect().text == "old")
        await stage.cache.waitUntilIdle()
        #expect(try await stage.holds() == false)
        await stage.end()
    }

    @Test("A5, H15: a policy that writes nothing invalidates nothing")
    func invalidationIsAWrite() async throws {
        let stage = try await Stage()
        _ = try await stage.get()
        _ = try await stage.get(policy: CachePolicy(writes: false), method: .put)
        #expect(try await stage.holds())
        await stage.end()
    }
}
