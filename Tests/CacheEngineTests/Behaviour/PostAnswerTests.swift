import CacheEngine
import CacheTestSupport
import Testing

/// RFC 9110 §9.3.3: a response to a POST whose content is that of the target.
@Suite struct PostAnswerTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let name: String
        var status = 200
        var fields: HeaderFields = ["Cache-Control": "max-age=60", "Content-Location": "/a"]
        var request: HeaderFields = [:]
        var isStored = false
        var testDescription: String { name }
    }

    static let rows: [Row] = [
        .init(name: "fresh and of the target", isStored: true),
        .init(
            name: "by its whole URL",
            fields: ["Cache-Control": "max-age=60", "Content-Location": Stage.url],
            isStored: true
        ),
        .init(name: "no Content-Location", fields: ["Cache-Control": "max-age=60"]),
        .init(
            name: "of another resource",
            fields: ["Cache-Control": "max-age=60", "Content-Location": "/b"]
        ),
        .init(name: "no freshness", fields: ["Content-Location": "/a", "ETag": "\"1\""]),
        .init(
            name: "freshness by heuristic",
            fields: ["Content-Location": "/a", "Last-Modified": Stage.date(-100_000)]
        ),
        .init(name: "created", status: 201),
        .init(name: "an error", status: 404),
        .init(
            name: "no-store",
            fields: ["Cache-Control": "max-age=60, no-store", "Content-Location": "/a"]
        ),
        .init(name: "no-store in the request", request: ["Cache-Control": "no-store"]),
        .init(name: "with authorization", request: ["Authorization": "x"]),
        .init(
            name: "with a cookie",
            fields: [
                "Cache-Control": "max-age=60", "Content-Location": "/a", "Set-Cookie": "a=b",
            ]
        ),
    ]

    @Test(
        "An answer to POST that is explicitly fresh content of its target answers later GETs",
        arguments: rows
    )
    func postAnswersLaterGets(row: Row) async throws {
        let stage = try await Stage()
        _ = try await stage.get()
        stage.origin.follow { request, _ in
            request.method == .post
                ? .whole(status: row.status, fields: row.fields, body: "posted")
                : .whole(fields: ["Cache-Control": "max-age=60"], body: "got")
        }
        let request = CacheRequest(
            method: .post,
            url: Stage.url,
            fields: row.request,
            body: BodyStream(ByteChunk("content"))
        )
        let posted = try await stage.send(request)
        #expect(posted.body == "posted")
        #expect(posted.source == .origin)
        let later = try await stage.get()
        #expect(later.source == (row.isStored || row.status == 404 ? .fresh : .origin))
        #expect(later.body == (row.isStored ? "posted" : row.status == 404 ? "hello" : "got"))
        #expect(try await stage.send(request).source == .origin, "No POST is answered by it")
        await stage.end()
    }

    @Test("A response to POST whose body breaks off answers nothing later, and the old one is gone")
    func brokenPostAnswerIsNotStored() async throws {
        let stage = try await Stage()
        _ = try await stage.get()
        let body = ManualBody()
        stage.origin.follow { _, _ in
            OriginResponse(
                status: 200,
                fields: [
                    "Cache-Control": "max-age=60", "Content-Location": "/a",
                    "Content-Length": "10",
                ],
                body: body.stream()
            )
        }
        let posted = try await stage.cache.respond(
            to: CacheRequest(method: .post, url: Stage.url)
        )
        body.feed("half")
        body.finish()
        await #expect(throws: CacheError.self) { try await posted.body.collect() }
        await stage.cache.waitUntilIdle()
        #expect(try await stage.holds() == false)
        await stage.end()
    }

    @Test("A GET that is fetched while a POST's response arrives is not replaced by it")
    func postResponseDoesNotReplaceANewerGet() async throws {
        let stage = try await Stage()
        let body = ManualBody()
        stage.origin.follow { request, _ in
            guard request.method == .post else {
                return .whole(fields: ["Cache-Control": "max-age=60"], body: "newer")
            }
            return OriginResponse(
                status: 200,
                fields: ["Cache-Control": "max-age=60", "Content-Location": "/a"],
                body: body.stream()
            )
        }
        let posted = try await stage.cache.respond(
            to: CacheRequest(method: .post, url: Stage.url)
        )
        let newer = try await stage.cache.respond(to: CacheRequest(url: Stage.url))
        #expect(try await newer.body.collect().text == "newer")
        body.feed("older")
        body.finish()
        #expect(try await posted.body.collect().text == "older")
        await stage.cache.waitUntilIdle()
        #expect(try await stage.get().body == "newer")
        await stage.end()
    }

    // MARK: Removals while a POST is under way

    private static let tagged: HeaderFields = [
        "Cache-Control": "max-age=60", "Content-Location": "/page", "Cache-Tag": "news",
    ]

    /// A removal that covers the page, of its kind.
    enum Removal: CaseIterable, Sendable {
        case ofTheKey, ofTheTag, ofEverything, softOfTheKey, softOfTheTag, softOfEverything
        case byAChange

        func perform(_ scene: FlightScene) async throws {
            switch self {
            case .ofTheKey: await Self.purge(.request(.page), scene)
            case .ofTheTag: await Self.purge(.tag("news"), scene)
            case .ofEverything: await Self.purge(.everything, scene)
            case .softOfTheKey: await Self.purge(.request(.page), isSoft: true, scene)
            case .softOfTheTag: await Self.purge(.tag("news"), isSoft: true, scene)
            case .softOfEverything: await Self.purge(.everything, isSoft: true, scene)
            case .byAChange:
                let change = await scene.crowd(1, .page.with { $0.method = .put })
                try await scene.answer(1, status: 204, fields: [:], body: "")
                #expect(change.first?.isComplete == true)
            }
        }

        static func purge(
            _ target: PurgeTarget,
            isSoft: Bool = false,
            _ scene: FlightScene
        ) async {
            await scene.world.perform { cache in
                await #expect(throws: Never.self) {
                    _ = try await cache.purge(target, isSoft: isSoft)
                }
            }
        }
    }

    @Test(
        "A response to POST is not stored if a removal covers it that came after the request",
        arguments: Removal.allCases,
        [false, true]
    )
    func removalDuringAPostHolds(removal: Removal, isHeadFirst: Bool) async throws {
        let scene = try await FlightScene()
        let posted = try #require(await scene.crowd(1, .page.with { $0.method = .post }).first)
        if isHeadFirst {
            let body = try await scene.begin(0, fields: Self.tagged)
            try await removal.perform(scene)
            await body.feed("posted", scene.world)
            await body.finish(scene.world)
        } else {
            try await removal.perform(scene)
            try await scene.answer(0, fields: Self.tagged, body: "posted")
            #expect(posted.info?.isStored == false)
        }
        #expect(posted.isComplete && posted.text == "posted")
        let count = scene.origin.count
        let later = try #require(await scene.crowd(1).first)
        try #require(scene.origin.count == count + 1)
        try await scene.answer(count, body: "got")
        #expect(later.text == "got" && later.info?.source == .origin)
        await scene.close()
    }

    @Test("A response to POST is stored although others were removed meanwhile")
    func otherRemovalsDuringAPostForbidNothing() async throws {
        let scene = try await FlightScene()
        _ = await scene.crowd(1, .page.with { $0.method = .post })
        await Removal.purge(.tag("sport"), scene)
        await Removal.purge(.request(CacheRequest(url: "http://example.com/other")), scene)
        try await scene.answer(0, fields: Self.tagged, body: "posted")
        let later = try #require(await scene.crowd(1).first)
        #expect(later.text == "posted" && later.info?.source == .fresh)
        await scene.close()
    }
}
