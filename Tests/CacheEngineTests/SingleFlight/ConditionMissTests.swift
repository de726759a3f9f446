import CacheEngine
import CacheTestSupport
import Testing

/// Conditional requests that find nothing stored, if the cache evaluates their conditions.
@Suite(.eachWay) struct ConditionMissTests {
    private static func page(_ fields: HeaderFields) -> CacheRequest {
        CacheRequest.page.with { $0.fields = fields }
    }

    private static let known = page(["If-None-Match": "\"1\""])

    private static let tagged: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"1\""]

    private static func scene(memory: MemoryOptions = .megabytes(32)) async throws -> FlightScene {
        try await FlightScene {
            $0.memory = memory
            $0.caching.conditionMiss = .whole
            $0.collapsing.hitForMissTime = .seconds(5)
        }
    }

    /// A scene whose entries have at most a tenth of 1 MiB.
    private static func smallScene() async throws -> FlightScene {
        try await scene(memory: .megabytes(1))
    }

    /// The condition of the request with that index, as the origin got it.
    private static func condition(_ index: Int, _ scene: FlightScene) throws -> String? {
        let exchange = try #require(scene.origin.exchanges.dropFirst(index).first)
        return exchange.request.fields["If-None-Match"]
    }

    /// A piece of a body; two of them are more than an entry may hold.
    private static let piece = String(repeating: "x", count: 64 << 10)

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

    /// A large response would be fetched again for each condition, and its transfer broken off.
    @Test(arguments: [nil, "Accept-Language"])
    func conditionsAreSentForWhatIsTooLarge(vary: String?) async throws {
        let scene = try await Self.smallScene()
        let first = await scene.crowd(1, Self.known)
        #expect(try Self.condition(0, scene) == nil)
        var fields = Self.tagged
        if let vary { fields["Vary"] = vary }
        try await scene.answer(0, fields: fields, body: Self.piece + Self.piece)
        #expect(first[0].status == 304)
        #expect(first[0].info?.refusal == StoreRefusalReason("too-large"))
        let second = await scene.crowd(1, Self.known)
        #expect(try Self.condition(1, scene) == "\"1\"")
        try await scene.answer(1, status: 304, fields: ["ETag": "\"1\""], body: "")
        #expect(second[0].status == 304)
        await scene.world.advance(seconds: 6)
        let third = await scene.crowd(1, Self.known)
        #expect(try Self.condition(2, scene) == nil, "The mark has ended")
        try await scene.answer(2, fields: fields, body: "small")
        #expect(third[0].status == 304)
        #expect(await scene.crowd(1).first?.info?.source == .fresh)
        await scene.close()
    }

    /// The origin does not announce the length.
    @Test func conditionsAreSentForWhatTurnsOutToBeTooLarge() async throws {
        let scene = try await Self.smallScene()
        let first = await scene.crowd(1, Self.known)
        let body = try await scene.begin(0, fields: Self.tagged)
        #expect(first[0].isComplete && first[0].status == 304)
        for _ in 0..<3 { await body.feed(Self.piece, scene.world) }
        #expect(body.isCancelled)
        let second = await scene.crowd(1, Self.known)
        #expect(try Self.condition(1, scene) == "\"1\"")
        try await scene.answer(1, status: 304, fields: ["ETag": "\"1\""], body: "")
        #expect(second[0].status == 304)
        await scene.close()
    }

    /// The whole may have a place where a part has none.
    @Test func partThatIsTooLargeMarksNothing() async throws {
        let scene = try await Self.smallScene()
        let last = 4 * Self.piece.utf8.count - 1
        let part = await scene.crowd(1, Self.page(["Range": "bytes=0-\(last)"]))
        let body = ManualBody()
        let fields: HeaderFields = [
            "Cache-Control": "max-age=60", "ETag": "\"1\"",
            "Content-Range": "bytes 0-\(last)/\(2 * last)",
        ]
        scene.origin.exchanges[0].answer(status: 206, fields: fields, body: body)
        await scene.world.settle()
        for _ in 0..<4 { await body.feed(Self.piece, scene.world) }
        await body.finish(scene.world)
        #expect(part[0].isComplete && part[0].status == 206)
        _ = await scene.crowd(1, Self.known)
        #expect(try Self.condition(1, scene) == nil)
        try await scene.answer(1, fields: Self.tagged, body: "small")
        await scene.close()
    }

    /// A crowd that reads a large response would reach the origin.
    @Test func requestsForWhatIsTooLargeAreStillCollapsed() async throws {
        let scene = try await Self.smallScene()
        _ = await scene.crowd(1, Self.known)
        try await scene.answer(0, fields: Self.tagged, body: Self.piece + Self.piece)
        let readers = await scene.crowd(3)
        #expect(scene.origin.count == 2)
        let fields: HeaderFields = [
            "Cache-Control": "max-age=60", "ETag": "\"1\"",
            "Content-Length": "\(2 * Self.piece.utf8.count)",
        ]
        let body = try await scene.begin(1, fields: fields)
        let conditional = await scene.crowd(1, Self.known)
        #expect(conditional[0].status == 304 && scene.origin.count == 2)
        for _ in 0..<2 { await body.feed(Self.piece, scene.world) }
        await body.finish(scene.world)
        #expect(readers.allSatisfy { $0.isComplete && $0.text == Self.piece + Self.piece })
        #expect(await scene.world.statistics.hitForMissMarks == 0)
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
