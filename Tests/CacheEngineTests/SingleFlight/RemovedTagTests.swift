import CacheEngine
import CacheTestSupport
import Testing

/// Removals of tags while a flight is under way, whose response may carry the tag or not.
@Suite(.eachWay) struct RemovedTagTests {
    enum Purge: CaseIterable, Sendable {
        case hard, soft

        func perform(_ cache: HTTPCache, _ tag: String) async {
            switch self {
            case .hard: _ = try? await cache.purge(tag: tag)
            case .soft: try? await cache.markStale(tagged: tag)
            }
        }
    }

    static func fields(_ tag: String, control: String = "max-age=60") -> HeaderFields {
        ["Cache-Control": control, "Cache-Tag": tag]
    }

    /// An application that purges by tag as often as its origin answers must not lose its cache.
    @Test(arguments: Purge.allCases)
    func s1CrowdIsOneRequestThoughAnotherTagIsRemoved(purge: Purge) async throws {
        let scene = try await FlightScene()
        var callers = await scene.crowd(3)
        for _ in 0..<5 {
            await scene.world.perform { await purge.perform($0, "other") }
            callers += await scene.crowd(3)
        }
        let body = try await scene.begin(0, fields: Self.fields("own"))
        await body.feed("bo", scene.world)
        for _ in 0..<5 {
            await scene.world.perform { await purge.perform($0, "other") }
            callers += await scene.crowd(3)
        }
        #expect(scene.origin.count == 1)
        await body.feed("dy", scene.world)
        await body.finish(scene.world)
        #expect(callers.allSatisfy { $0.isComplete && $0.text == "body" })
        #expect(await scene.crowd(1).first?.info?.source == .fresh)
        #expect(scene.origin.count == 1)
        await scene.close()
    }

    /// The requests that came before the removal get the response, and those after it do not.
    @Test(arguments: Purge.allCases, ["own", "other, own"])
    func s18ResponseWithARemovedTagIsForEarlierRequests(purge: Purge, tags: String) async throws {
        let scene = try await FlightScene()
        let before = await scene.crowd(3)
        await scene.world.perform { await purge.perform($0, "own") }
        let after = await scene.crowd(3)
        #expect(scene.origin.count == 1)
        try await scene.answer(0, fields: Self.fields(tags), body: "old")
        #expect(before.allSatisfy { $0.isComplete && $0.text == "old" })
        #expect(after.allSatisfy { $0.status == nil })
        try #require(scene.origin.count == 2)
        try await scene.answer(1, fields: Self.fields(tags), body: "new")
        #expect(after.allSatisfy { $0.isComplete && $0.text == "new" })
        #expect(await scene.crowd(1).first?.text == "new")
        await scene.close()
    }

    /// A 304 has the tags of the stored response, unless it names others.
    @Test(arguments: Purge.allCases)
    func s18ConfirmationOfARemovedTagIsForEarlierRequests(purge: Purge) async throws {
        let scene = try await FlightScene()
        var fields = Self.fields("own", control: "max-age=10")
        fields["ETag"] = "\"1\""
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: fields, body: "old")
        await scene.world.advance(seconds: 20)
        let before = await scene.crowd(2)
        await scene.world.perform { await purge.perform($0, "own") }
        let after = await scene.crowd(2)
        try await scene.answer(1, status: 304, fields: ["ETag": "\"1\""], body: "")
        #expect(before.allSatisfy { $0.isComplete && $0.text == "old" })
        #expect(after.allSatisfy { $0.status == nil })
        try #require(scene.origin.count == 3)
        try await scene.answer(2, fields: fields, body: "new")
        #expect(after.allSatisfy { $0.isComplete && $0.text == "new" })
        await scene.close()
    }

    /// Until the response is stored, the hook may give it the tag.
    @Test func s18TagsOfTheHookAreNotKnownWithTheHead() async throws {
        let scene = try await FlightScene {
            $0.hooks.willStore = { proposal in
                var tagged = proposal
                tagged.tags.append("hooked")
                return tagged
            }
        }
        let before = await scene.crowd(2)
        await scene.world.perform { _ = try? await $0.purge(tag: "hooked") }
        let after = await scene.crowd(2)
        try await scene.answer(0, fields: Self.fields("own"), body: "old")
        #expect(before.allSatisfy { $0.isComplete && $0.text == "old" })
        try #require(scene.origin.count == 2)
        try await scene.answer(1, fields: Self.fields("own"), body: "new")
        #expect(after.allSatisfy { $0.isComplete && $0.text == "new" })
        await scene.close()
    }

    /// The refresh under way would not be stored.
    @Test func s19RefreshOfARemovedTagBeginsAnew() async throws {
        let scene = try await FlightScene()
        let control = "max-age=10, stale-while-revalidate=100"
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: Self.fields("own", control: control), body: "old")
        await scene.world.advance(seconds: 20)
        for (tag, count) in [("other", 2), ("own", 3), ("other", 3)] {
            #expect(await scene.crowd(2).allSatisfy { $0.text == "old" })
            await scene.world.perform { try? await $0.markStale(tagged: tag) }
            #expect(await scene.crowd(2).allSatisfy { $0.text == "old" })
            #expect(scene.origin.count == count, "\(tag)")
        }
        try await scene.answer(1, fields: Self.fields("own", control: control), body: "older")
        #expect(await scene.crowd(1).first?.text == "old")
        try await scene.answer(2, fields: Self.fields("own", control: control), body: "new")
        #expect(await scene.crowd(1).first?.text == "new")
        await scene.close()
    }
}
