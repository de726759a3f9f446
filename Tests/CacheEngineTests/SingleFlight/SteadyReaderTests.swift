import CacheEngine
import CacheTestSupport
import Testing

/// Readers of different pace of one body that is too large to be kept.
@Suite(.eachWay) struct SteadyReaderTests {
    private static let piece = String(repeating: "x", count: 64 * 1_024)
    private static let pieces = 200
    private static let bodyBytes = pieces * 64 * 1_024

    private static func scene() async throws -> FlightScene {
        try await FlightScene {
            $0.memory = .megabytes(4)
            $0.originLimits.windowSize = .bytes(4 * 64 * 1_024)
        }
    }

    /// A reader that takes one piece for each step, and has asked for the first.
    private static func steady(_ scene: FlightScene) async throws -> Caller {
        let reader = try #require(await scene.crowd(1, reading: .stepwise).first)
        reader.readOn()
        await scene.world.settle()
        return reader
    }

    private static func feedAll(_ body: ManualBody, _ scene: FlightScene) async {
        for _ in 0..<pieces { await body.feed(piece, scene.world) }
        await body.finish(scene.world)
    }

    private static func readOn(_ reader: Caller, _ scene: FlightScene) async {
        for _ in 0..<2 * pieces where reader.end == nil {
            reader.readOn()
            await scene.world.settle()
        }
    }

    @Test func s05QuickReaderCutsOffNoSteadyOne() async throws {
        let scene = try await Self.scene()
        let slow = try await Self.steady(scene)
        let quick = try #require(await scene.crowd(1).first)
        let body = try await scene.begin(0)
        await Self.feedAll(body, scene)
        #expect(quick.bytes.count < Self.bodyBytes / 2, "It does not outrun the slow reader")
        await Self.readOn(slow, scene)
        #expect(slow.isComplete && slow.bytes.count == Self.bodyBytes)
        #expect(quick.isComplete && quick.bytes.count == Self.bodyBytes)
        #expect(scene.origin.count == 1)
        await scene.close()
    }

    @Test func s05ReaderThatStandsStillIsCutOffInTheEnd() async throws {
        let scene = try await Self.scene()
        let slow = try await Self.steady(scene)
        let quick = try #require(await scene.crowd(1).first)
        let body = try await scene.begin(0)
        await Self.feedAll(body, scene)
        #expect(!quick.isComplete)
        for _ in 0..<20 { await scene.world.advance(seconds: 10) }
        #expect(quick.isComplete && quick.bytes.count == Self.bodyBytes)
        await Self.readOn(slow, scene)
        #expect(slow.errorCode == .readerTooSlow)
        await scene.close()
    }

    /// The first piece of a response's body, and its reader, who has not left.
    ///
    /// `@unchecked Sendable`: one task after the other uses it.
    private struct Taken: @unchecked Sendable {
        let piece: ByteChunk?
        private var iterator: BodyStream.AsyncIterator

        init(_ request: CacheRequest, from cache: HTTPCache) async throws {
            iterator = try await cache.respond(to: request).body.makeAsyncIterator()
            piece = try await iterator.next()
        }

        /// Whether the body ends cleanly after the piece.
        func isWhole() async -> Bool {
            var iterator = iterator
            do { return try await iterator.next() == nil } catch { return false }
        }
    }

    /// Its client may take long to leave, for example until it has received the last bytes.
    @Test func s26PartThatIsCompleteEndsTheTransfer() async throws {
        let scene = try await Self.scene()
        let leader = try #require(await scene.crowd(1, reading: .headOnly).first)
        let first = CacheRequest.page.with { $0.fields["Range"] = "bytes=0-9" }
        let executor = scene.world.executor
        let taking = executor.start { [cache = scene.world.cache] in
            try? await Taken(first, from: cache)
        }
        await scene.world.settle()
        let body = try await scene.begin(
            0,
            fields: ["Cache-Control": "max-age=600", "Content-Length": "\(Self.bodyBytes)"]
        )
        for _ in 0..<8 { await body.feed(Self.piece, scene.world) }
        #expect(leader.isComplete && scene.origin.count == 1)
        let part = try #require(await taking.value)
        #expect(part.piece?.count == 10)
        #expect(body.isCancelled)
        let ending = executor.start { await part.isWhole() }
        await scene.world.settle()
        #expect(await ending.value)
        await scene.close()
    }

    /// The next piece of the origin would tell the writer, but none comes.
    @Test func s26SilentOriginIsLeftSoonAfterTheLastReader() async throws {
        let scene = try await Self.scene()
        let reader = try #require(await scene.crowd(1).first)
        let body = try await scene.begin(
            0,
            fields: ["Cache-Control": "max-age=600", "Content-Length": "\(Self.bodyBytes)"]
        )
        for _ in 0..<8 { await body.feed(Self.piece, scene.world) }
        await scene.world.advance(seconds: 20)
        #expect(reader.bytes.count == 8 * Self.piece.utf8.count && !body.isCancelled)
        reader.cancel()
        await scene.world.settle()
        await scene.world.advance(seconds: 5)
        #expect(body.isCancelled)
        #expect(await scene.world.statistics.originFailures == 0)
        await scene.close()
    }

    /// The reader has taken the last bytes before the origin's end is read.
    @Test func s26TransferIsNotBrokenOffBehindItsLastByte() async throws {
        let scene = try await Self.scene()
        let leader = try #require(await scene.crowd(1, reading: .headOnly).first)
        let rest = CacheRequest.page.with { $0.fields["Range"] = "bytes=1-" }
        let part = try #require(await scene.crowd(1, rest).first)
        let count = 16 * Self.piece.utf8.count
        let body = try await scene.begin(
            0,
            fields: ["Cache-Control": "max-age=600", "Content-Length": "\(count)"]
        )
        await body.feed(Self.piece, scene.world)
        // More than a window at once, so that the writer waits and the reader is done in one step.
        await body.feed(String(repeating: Self.piece, count: 15), scene.world)
        #expect(leader.isComplete && part.bytes.count == count - 1)
        #expect(!body.isCancelled)
        await body.finish(scene.world)
        #expect(part.isComplete && !body.isCancelled && scene.origin.count == 1)
        await scene.close()
    }

    /// Its reader would wait for all the bytes before it.
    @Test func s26PartFarAheadIsFetchedAlone() async throws {
        let scene = try await Self.scene()
        let slow = try await Self.steady(scene)
        let last = CacheRequest.page.with { $0.fields["Range"] = "bytes=-1" }
        let part = try #require(await scene.crowd(1, last).first)
        #expect(scene.origin.count == 1)
        let length = "\(Self.bodyBytes)"
        let body = try await scene.begin(
            0,
            fields: ["Cache-Control": "max-age=600", "Content-Length": length]
        )
        let ranges = scene.origin.exchanges.map { $0.request.fields["Range"] }
        #expect(ranges == [nil, "bytes=-1"])
        await Self.feedAll(body, scene)
        let range = "bytes \(Self.bodyBytes - 1)-\(Self.bodyBytes - 1)/\(length)"
        try await scene.answer(
            1,
            status: 206,
            fields: ["Content-Range": range, "Content-Length": "1"],
            body: "x"
        )
        #expect(part.isComplete && part.status == 206 && part.text == "x")
        await Self.readOn(slow, scene)
        #expect(slow.isComplete && slow.bytes.count == Self.bodyBytes)
        await scene.close()
    }
}
