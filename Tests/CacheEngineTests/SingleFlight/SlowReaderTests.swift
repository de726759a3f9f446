import CacheTestSupport
import Testing

@testable import CacheEngine

/// Slow readers of bodies that are being stored, while little memory is left for arriving bodies.
@Suite(.eachWay) struct SlowReaderTests {
    private static let pieceBytes = 64 << 10
    /// The memory that arriving bodies have beside the entries.
    private static let totalBytes = 16 * pieceBytes
    private static let memoryShort = StoreRefusalReason("memory-short")

    private static func piece(_ number: Int) -> [UInt8] {
        [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: pieceBytes)
    }

    private static func content(_ pieces: Int) -> [UInt8] { (0..<pieces).flatMap { piece($0) } }

    private static func feed(_ pieces: Range<Int>, _ body: ManualBody) {
        for number in pieces { body.feed(ByteChunk(piece(number))) }
    }

    private static func scene() async throws -> FlightScene {
        try await FlightScene { $0.bodyLimits = BodyLimits(totalBytes: totalBytes) }
    }

    /// Starts the request with that number, whose body has yet to arrive.
    private static func begin(
        _ number: Int,
        _ scene: FlightScene,
        reading: Caller.Reading
    ) async throws -> (reader: Caller, body: ManualBody) {
        let request = CacheRequest(url: "http://example.com/\(number)")
        let reader = try #require(await scene.crowd(1, request, reading: reading).first)
        return (reader, try await scene.begin(number))
    }

    private static func readOn(_ readers: [Caller], _ scene: FlightScene) async {
        for _ in 0..<100 where readers.contains(where: { $0.end == nil }) {
            for reader in readers { reader.readOn() }
            await scene.world.settle()
        }
    }

    /// A scene whose first reader has yet to take as much as all readers together may hold.
    private static func crowdedScene() async throws -> (scene: FlightScene, hoarder: Caller) {
        let scene = try await scene()
        let (hoarder, body) = try await begin(0, scene, reading: .stepwise)
        feed(0..<16, body)
        await body.finish(scene.world)
        #expect(scene.world.cache.services.bodies.owedBytes == totalBytes)
        #expect(await scene.world.statistics.stored == 1)
        return (scene, hoarder)
    }

    /// The same scene, with a second slow reader, whose body the origin has sent whole.
    private static func heldUpScene() async throws -> (
        scene: FlightScene, hoarder: Caller, slow: Caller, body: ManualBody
    ) {
        let (scene, hoarder) = try await crowdedScene()
        let (slow, body) = try await begin(1, scene, reading: .stepwise)
        feed(0..<8, body)
        await body.finish(scene.world)
        return (scene, hoarder, slow, body)
    }

    @Test func slowReadersOfManyBodiesHoldLittle() async throws {
        let scene = try await Self.scene()
        let bodies = scene.world.cache.services.bodies
        var readers: [Caller] = []
        var sources: [ManualBody] = []
        for number in 0..<40 {
            let (reader, source) = try await Self.begin(number, scene, reading: .stepwise)
            readers.append(reader)
            sources.append(source)
        }
        // The least that each body may hold, and one piece more.
        let heldBytesMax = Self.totalBytes + 40 * 2 * Self.pieceBytes
        for number in 0..<16 {
            for source in sources { Self.feed(number..<number + 1, source) }
            await scene.world.settle()
            #expect(bodies.owedBytes <= heldBytesMax)
            #expect(bodies.gatheredBytes <= heldBytesMax)
        }
        #expect(bodies.owedBytes > Self.totalBytes)
        #expect(sources.allSatisfy { $0.unreadCount > 0 }, "The origin is held back")
        for source in sources { source.finish() }
        await Self.readOn(readers, scene)
        #expect(readers.allSatisfy { $0.isComplete && $0.bytes == Self.content(16) })
        #expect(bodies.owedBytes == 0)
        #expect(bodies.gatheredBytes == 0)
        let statistics = await scene.world.statistics
        #expect(statistics.stored + (statistics.refusals[Self.memoryShort] ?? 0) == 40)
        #expect(scene.origin.count == 40)
        await scene.close()
    }

    @Test func bodyOfASteadyReaderIsStoredThoughSlowOnesHoldTheMemory() async throws {
        let (scene, hoarder, slow, slowBody) = try await Self.heldUpScene()
        #expect(slowBody.unreadCount > 0)
        let (steady, body) = try await Self.begin(2, scene, reading: .steadily)
        Self.feed(0..<8, body)
        await body.finish(scene.world)
        #expect(steady.isComplete && steady.bytes == Self.content(8))
        #expect(await scene.world.statistics.stored == 2)
        let again = CacheRequest(url: "http://example.com/2")
        #expect(await scene.crowd(1, again).first?.info?.source == .fresh)
        await Self.readOn([hoarder, slow], scene)
        #expect(slow.isComplete && slow.bytes == Self.content(8))
        #expect(hoarder.isComplete && hoarder.bytes == Self.content(16))
        #expect(await scene.world.statistics.stored == 3)
        await scene.close()
    }

    @Test func readerThatHoldsUpTheStoreForTooLongEndsIt() async throws {
        let (scene, hoarder, slow, body) = try await Self.heldUpScene()
        await scene.world.advance(seconds: 40)
        #expect(await scene.world.statistics.refusals.isEmpty)
        await scene.world.advance(seconds: 40)
        #expect(await scene.world.statistics.refusals == [Self.memoryShort: 1])
        #expect(body.unreadCount > 0, "The origin is still held back")
        await Self.readOn([hoarder, slow], scene)
        #expect(slow.isComplete && slow.bytes == Self.content(8))
        #expect(await scene.world.statistics.stored == 1)
        #expect(await scene.world.statistics.timeouts == 0)
        await scene.close()
    }

    @Test func readerThatLeavesHoldsUpNoStore() async throws {
        let (scene, hoarder, slow, _) = try await Self.heldUpScene()
        #expect(await scene.world.statistics.stored == 1)
        slow.cancel()
        await scene.world.settle()
        #expect(await scene.world.statistics.stored == 2)
        await Self.readOn([hoarder], scene)
        await scene.close()
    }

    @Test func requestsForAHeldUpBodyGetAllOfIt() async throws {
        let (scene, hoarder, slow, _) = try await Self.heldUpScene()
        let page = CacheRequest(url: "http://example.com/1")
        let follower = try #require(await scene.crowd(1, page).first)
        let head = try #require(await scene.crowd(1, page.with { $0.method = .head }).first)
        #expect(head.isComplete && head.status == 200)
        #expect(!follower.isComplete && follower.bytes.count >= Self.pieceBytes)
        await Self.readOn([hoarder, slow], scene)
        #expect(slow.isComplete && slow.bytes == Self.content(8))
        #expect(follower.isComplete && follower.bytes == Self.content(8))
        #expect(scene.origin.count == 2)
        #expect(await scene.world.statistics.stored == 2)
        await scene.close()
    }

    @Test func heldUpBodyEndsWithTheCache() async throws {
        let (scene, hoarder) = try await Self.crowdedScene()
        let (slow, body) = try await Self.begin(1, scene, reading: .stepwise)
        Self.feed(0..<8, body)
        await scene.world.settle()
        #expect(body.unreadCount > 0)
        #expect(await scene.world.shutDown())
        await Self.readOn([hoarder, slow], scene)
        #expect(hoarder.isComplete && hoarder.bytes == Self.content(16))
        #expect(slow.errorCode == .shutDown)
    }

    @Test func bodiesThatArriveAtOnceAreGatheredWithinTheLimit() async throws {
        let scene = try await Self.scene()
        let bodies = scene.world.cache.services.bodies
        var readers: [Caller] = []
        var sources: [ManualBody] = []
        for number in 0..<8 {
            let (reader, source) = try await Self.begin(number, scene, reading: .steadily)
            readers.append(reader)
            sources.append(source)
        }
        for number in 0..<8 {
            for source in sources {
                Self.feed(number..<number + 1, source)
                await scene.world.settle()
                #expect(bodies.gatheredBytes <= Self.totalBytes)
            }
        }
        for source in sources { await source.finish(scene.world) }
        #expect(readers.allSatisfy { $0.isComplete && $0.bytes == Self.content(8) })
        #expect(bodies.gatheredBytes == 0)
        let statistics = await scene.world.statistics
        let refused = statistics.refusals[Self.memoryShort] ?? 0
        #expect(statistics.stored > 0 && statistics.stored + refused == 8)
        await scene.close()
    }

    /// A reader that lags behind reads the rest from the file.
    @Test(.timeLimit(.minutes(1))) func largeBodyOfASlowReaderGoesToDisk() async throws {
        let source = ManualBody()
        let fields: HeaderFields = [
            "Cache-Control": "max-age=60", "Content-Length": "\(40 * Self.pieceBytes)",
        ]
        let origin = ScriptedOrigin { _, _ in
            OriginResponse(status: 200, fields: fields, body: source.stream())
        }
        let stage = try await Stage(origin) {
            $0.memory = .megabytes(64)
            $0.backing = .disk(path: "/cache", capacity: .megabytes(128))
            $0.backing.fileSystem = .replaced(FaultyFileSystem(seed: 1))
            $0.bodyLimits = BodyLimits(totalBytes: 4 * Self.pieceBytes)
        }
        let response = try await stage.cache.respond(to: CacheRequest(url: Stage.url))
        var iterator = response.body.makeAsyncIterator()
        Self.feed(0..<40, source)
        source.finish()
        // The flight ends although its reader has taken nothing.
        await stage.cache.waitUntilIdle()
        #expect(stage.cache.services.bodies.owedBytes <= 6 * Self.pieceBytes)
        var read: [UInt8] = []
        while let piece = try await iterator.next() { read += piece.array }
        #expect(read == Self.content(40))
        #expect(try await stage.holds())
        #expect(await stage.cache.statistics.refusals.isEmpty)
        await stage.end()
    }
}
