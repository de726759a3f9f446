import CacheEngine
import CacheTestSupport
import Testing

/// Conditional requests that find nothing stored, if the cache evaluates their conditions.
@Suite struct ConditionMissTests {
    private static func page(_ fields: HeaderFields) -> CacheRequest {
        CacheRequest.page.with { $0.fields = fields }
    }

    private static let known = page(["If-None-Match": "\"1\""])

    private static func scene() async throws -> FlightScene {
        try await FlightScene { $0.caching.conditionMiss = .whole }
    }

    @Test func oneRequestFillsTheCacheForAll() async throws {
        let scene = try await Self.scene()
        var callers = await scene.crowd(3, Self.known)
        callers += await scene.crowd(1, Self.page(["If-None-Match": "\"0\""]))
        callers += await scene.crowd(1)
        #expect(scene.origin.count == 1)
        #expect(scene.origin.exchanges[0].request.fields["If-None-Match"] == nil)
        try await scene.answer(
            0,
            fields: ["Cache-Control": "max-age=60", "ETag": "\"1\""],
            body: "one"
        )
        let statuses = callers.map { $0.status }
        #expect(statuses == [304, 304, 304, 200, 200])
        #expect(callers.map(\.text) == ["", "", "", "one", "one"])
        let later = await scene.crowd(1, Self.known)
        #expect(later[0].status == 304 && later[0].info?.source == .fresh)
        #expect(scene.origin.count == 1)
        await scene.close()
    }

    /// A resource that is never stored would be sent whole each time.
    @Test func conditionsAreSentForWhatIsNeverStored() async throws {
        let scene = try await Self.scene()
        let first = await scene.crowd(1, Self.known)
        try await scene.answer(
            0,
            fields: ["Cache-Control": "no-store", "ETag": "\"1\""],
            body: "one"
        )
        #expect(first[0].status == 304)
        let second = await scene.crowd(1, Self.known)
        #expect(scene.origin.count == 2)
        #expect(scene.origin.exchanges[1].request.fields["If-None-Match"] == "\"1\"")
        try await scene.answer(1, status: 304, fields: ["ETag": "\"1\""], body: "")
        #expect(second[0].status == 304)
        await scene.close()
    }

    @Test(
        arguments: [
            ["If-None-Match": "\"1\"", "Range": "bytes=0-1"],
            ["If-None-Match": "\"1\"", "If-Match": "\"1\""],
            ["If-None-Match": "\"1\"", "Authorization": "Basic eA=="],
            ["If-None-Match": "\"1\"", "Cache-Control": "no-store"],
            ["If-None-Match": "\"1\"", "Cache-Control": "max-age=0"],
            ["If-None-Match": "\"1\"", "Cache-Control": "no-cache"],
        ] as [HeaderFields]
    )
    func otherRequestsAreSentAsTheyCame(_ fields: HeaderFields) async throws {
        let scene = try await Self.scene()
        _ = await scene.crowd(1, Self.page(fields))
        #expect(scene.origin.exchanges[0].request.fields["If-None-Match"] == "\"1\"")
        try await scene.answer(0, body: "one")
        await scene.close()
    }
}
