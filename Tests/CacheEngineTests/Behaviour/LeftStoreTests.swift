import CacheTestSupport
import Testing

@testable import CacheEngine

/// Stores that a fetch leaves to its caller (`RequestOptions.leavesStoring`).
@Suite struct LeftStoreTests {
    @Test("a store that a newer response has overtaken removes nothing")
    func overtakenStoreLeavesTheNewerResponse() async throws {
        let stage = try await Stage(
            ScriptedOrigin { _, number in
                .whole(fields: ["Cache-Control": "max-age=60"], body: "version \(number)")
            }
        )
        var request = CacheRequest(url: Stage.url)
        request.options.policy = .reload
        request.options.leavesStoring = true
        let held = try await Self.twoResponses(to: request, stage)
        for response in held.reversed() {
            let pending = try #require(response.info.pendingStore)
            _ = try await stage.cache.store(response, for: request, options: .init(), as: pending)
        }
        let newer = try await held[1].body.collect().text
        #expect(try await stage.get().body == newer)
        #expect(stage.origin.count == 2)
        await stage.end()
    }

    /// The ways in which a caller does not store what a fetch has left to it.
    enum Refusal: CaseIterable, Sendable {
        /// The caller declines.
        case declined
        /// The caller has changed the response, which must not be stored now.
        case changed
        /// The caller's response answers no request.
        case unselectable
    }

    @Test(
        "a store that a newer response has overtaken ends nothing, however its caller refuses it",
        arguments: Refusal.allCases,
        [false, true]
    )
    func overtakenStoreEndsNothing(refusal: Refusal, varies: Bool) async throws {
        var fields: HeaderFields = ["Cache-Control": "max-age=60"]
        if varies { fields["Vary"] = "Accept-Language" }
        let stage = try await Stage(
            ScriptedOrigin { [fields] _, number in
                .whole(fields: fields, body: "version \(number)")
            }
        )
        if varies { _ = try await stage.get(Stage.url, ["Accept-Language": "de"]) }
        var request = CacheRequest(url: Stage.url, fields: ["Accept-Language": "en"])
        request.options.policy = .reload
        request.options.leavesStoring = true
        let held = try await Self.twoResponses(to: request, stage)
        let newest = try await held[1].body.collect().text
        let older = try #require(held[0].info.pendingStore)
        let newer = try #require(held[1].info.pendingStore)
        let outcome = try await stage.cache.store(
            held[1],
            for: request,
            options: .init(),
            as: newer
        )
        #expect(outcome == .stored)
        switch refusal {
        case .declined: await stage.cache.endReplaced(by: older, for: request)
        case .changed, .unselectable:
            var changed = held[0]
            changed.fields["Cache-Control"] = refusal == .changed ? "no-store" : "max-age=60"
            changed.fields["Vary"] = refusal == .unselectable ? "*" : nil
            let outcome = try await stage.cache.store(
                changed,
                for: request,
                options: .init(),
                as: older
            )
            #expect(outcome == .refused(.notAdmitted))
        }
        let stored = try await stage.cache.storedResponse(for: request)
        #expect(try await stored?.body.collect().text == newest)
        #expect(try await stage.holds(Stage.url, ["Accept-Language": "de"]))
        await stage.end()
    }

    @Test("a store that its caller declines ends the response that it would have replaced")
    func declinedStoreEndsTheReplaced() async throws {
        let scene = try await FlightScene()
        _ = await scene.crowd(1)
        let windowed: HeaderFields = ["Cache-Control": "max-age=10, stale-while-revalidate=60"]
        try await scene.answer(0, fields: windowed, body: "old")
        await scene.world.advance(seconds: 20)
        let leaving = CacheRequest.page.with { $0.options.leavesStoring = true }
        #expect(await scene.crowd(1, leaving).first?.info?.source == .stale)
        // It waits for the refresh, which marks the stored response and leaves it.
        let waiting = leaving.with { $0.fields["Cache-Control"] = "no-cache" }
        let caller = try #require(await scene.crowd(1, waiting).first)
        try #require(scene.origin.count == 2)
        try await scene.answer(1, body: "new")
        #expect(caller.text == "new")
        let pending = try #require(caller.info?.pendingStore)
        await scene.world.perform { cache in
            await cache.endReplaced(by: pending, for: waiting)
            let stored = try? await cache.storedResponse(for: .page)
            #expect(stored == nil)
        }
        await scene.close()
    }

    /// Two responses whose storing is left to the caller, with their bodies.
    private static func twoResponses(
        to request: CacheRequest,
        _ stage: Stage
    ) async throws -> [CacheResponse] {
        var held: [CacheResponse] = []
        for _ in 0..<2 {
            var response = try await stage.cache.respond(to: request)
            response.body = BodyStream(try await response.body.collect())
            held.append(response)
        }
        await stage.cache.waitUntilIdle()
        return held
    }
}
