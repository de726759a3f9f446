import CacheEngine
import CacheTestSupport
import Testing

/// Requests that wait for a flight whose head has arrived, while the store is waited for.
@Suite(.eachWay) struct LateWaiterTests {
    /// A scene in which `answer` has sent a head for the requests that wait; the response varies, and
    /// waits for the store to tell the index of its resource.
    private static func answered(
        _ answer: (FlightScene) async throws -> Void
    ) async throws -> (scene: FlightScene, store: NemesisStore, waiting: [Caller]) {
        let store = NemesisStore(InMemoryStore())
        let scene = try await FlightScene { $0.backing = .custom(store) }
        let waiting = await scene.crowd(3)
        store.follow(StoreScene.failing(.entry, first: 1, with: .hangsBefore(.ignored)))
        try await answer(scene)
        #expect(store.hungCount == 1)
        return (scene, store, waiting)
    }

    @Test(
        arguments: [
            ("max-age=60", "", 0, false), ("max-age=60", "max-age=2", 2, false),
            ("max-age=60", "max-age=1", 2, true), ("max-age=60", "max-age=0", 1, true),
            ("max-age=60", "no-cache", 0, true), ("no-cache", "", 0, true),
            ("max-age=1", "", 2, true),
        ]
    )
    func s14RequestAfterTheHeadJudgesTheAnswerAsALaterOne(
        control: String,
        directive: String,
        seconds: Double,
        isAsked: Bool
    ) async throws {
        let fields: HeaderFields = [
            "Cache-Control": control, "ETag": "\"1\"", "Vary": "Accept-Language",
        ]
        let (scene, store, waiting) = try await Self.answered {
            try await $0.answer(0, fields: fields, body: "first")
        }
        await scene.world.advance(seconds: seconds)
        let request = CacheRequest.page.with {
            if !directive.isEmpty { $0.fields["Cache-Control"] = directive }
        }
        let late = try #require(await scene.crowd(1, request).first)
        #expect(scene.origin.count == 1 && late.status == nil)
        store.release()
        await scene.world.settle()
        #expect(waiting.allSatisfy { $0.isComplete && $0.text == "first" })
        #expect(scene.origin.count == (isAsked ? 2 : 1))
        if isAsked { try await scene.answer(1, fields: fields, body: "second") }
        #expect(late.isComplete && late.text == (isAsked ? "second" : "first"))
        #expect(isAsked || late.info?.source == .fresh)
        await scene.close()
    }

    /// A response that is not stored ends with its last reader.
    @Test func s14BodyAwaitsNoRequestThatCameAfterItsHead() async throws {
        let fields: HeaderFields = [
            "Cache-Control": "max-age=60", "Vary": "Accept-Language",
            "Cache-Tag": (0..<257).map { "tag\($0)" }.joined(separator: ", "),
        ]
        let body = ManualBody()
        let (scene, store, waiting) = try await Self.answered {
            $0.origin.exchanges.first?.answer(fields: fields, body: body)
            await $0.world.settle()
        }
        let reload = CacheRequest.page.with { $0.fields["Cache-Control"] = "no-cache" }
        let late = try #require(await scene.crowd(1, reload).first)
        store.release()
        await scene.world.settle()
        await body.feed("first ", scene.world)
        #expect(waiting.allSatisfy { $0.info?.refusal == "too-many-tags" })
        for caller in waiting { caller.cancel() }
        await scene.world.settle()
        await body.feed("answer", scene.world)
        #expect(body.isCancelled)
        try await scene.answer(1, body: "newer")
        #expect(late.isComplete && late.text == "newer")
        await scene.close()
    }
}
