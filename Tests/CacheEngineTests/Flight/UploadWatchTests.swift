import CacheTestSupport
import Testing

@testable import CacheEngine

/// The time limit on the response head does not run while the request's content is uploaded.
@Suite struct UploadWatchTests {
    /// Reads all of the content, then answers or hangs.
    private struct TakingOrigin: Origin {
        let answers: Bool

        func fetch(_ request: OriginRequest) async throws -> OriginResponse {
            var count = 0
            if let body = request.body { for try await piece in body { count += piece.count } }
            guard answers else {
                let never = AsyncStream<Void>.makeStream()
                for await _ in never.stream {}
                throw CancellationError()
            }
            return OriginResponse(status: 200, body: BodyStream(ByteChunk("\(count)")))
        }
    }

    private static func world(answers: Bool) async throws -> SimulatedCache {
        var configuration = HTTPCache.Configuration(memory: .megabytes(4))
        configuration.originLimits.maximumHeadTime = .seconds(3)
        return try await SimulatedCache(
            configuration: configuration,
            origin: TakingOrigin(answers: answers)
        )
    }

    private static func upload(_ body: BodyStream) -> CacheRequest {
        var request = CacheRequest(url: "http://example.com/upload")
        request.method = .put
        request.body = body
        return request
    }

    @Test func steadyUploadMayTakeLongerThanAHead() async throws {
        let world = try await Self.world(answers: true)
        let content = ManualBody()
        let caller = await world.answer(Self.upload(content.stream()))
        for _ in 0..<8 {
            content.feed("x")
            await world.advance(seconds: 1)
        }
        #expect(!caller.isComplete && caller.errorCode == nil)
        content.finish()
        await world.settle()
        #expect(caller.isComplete)
        #expect(await world.shutDown())
    }

    /// The timeout counts from the last piece, too.
    @Test func steadyUploadMayTakeLongerThanItsTimeout() async throws {
        let world = try await Self.world(answers: false)
        let content = ManualBody()
        var request = Self.upload(content.stream())
        request.options.timeout = .seconds(2)
        let caller = await world.answer(request)
        for _ in 0..<8 {
            content.feed("x")
            await world.advance(seconds: 1)
        }
        #expect(caller.end == nil)
        content.finish()
        await world.advance(seconds: 1)
        #expect(caller.end == nil)
        for _ in 0..<4 { await world.advance(seconds: 1) }
        #expect([.deadlineExceeded, .originTimedOut].contains(caller.errorCode))
        #expect(await world.shutDown())
    }

    /// An origin may read the content before it sends it.
    @Test func contentThatMovesAfterItWasReadExtendsTheTime() async throws {
        let origin = HeldOrigin()
        var configuration = HTTPCache.Configuration(memory: .megabytes(4))
        configuration.originLimits.maximumHeadTime = .seconds(3)
        let world = try await SimulatedCache(configuration: configuration, origin: origin)
        let content = ManualBody()
        let caller = await world.answer(Self.upload(content.stream()))
        for _ in 0..<8 {
            origin.held.last?.request.body?.noteMovement()
            await world.advance(seconds: 1)
        }
        #expect(caller.end == nil)
        for _ in 0..<5 { await world.advance(seconds: 1) }
        #expect(caller.errorCode == .originTimedOut)
        #expect(await world.shutDown())
    }

    @Test("content that stands still, and a head that does not come after it, end the request")
    func limitCountsFromTheLastPiece() async throws {
        for ends in [true, false] {
            let world = try await Self.world(answers: false)
            let content = ManualBody()
            let caller = await world.answer(Self.upload(content.stream()))
            for _ in 0..<4 {
                content.feed("x")
                await world.advance(seconds: 1)
            }
            if ends { content.finish() }
            await world.advance(seconds: 2)
            #expect(caller.errorCode == nil)
            await world.advance(seconds: 3)
            #expect(caller.errorCode == .originTimedOut)
            #expect(await world.shutDown())
        }
    }

    @Test func contentInMemoryIsGivenTheTimeItTakes() async throws {
        let world = try await Self.world(answers: false)
        let content = ByteChunk([UInt8](repeating: 1, count: 10 * UploadProgress.bytesPerSecondMin))
        let caller = await world.answer(Self.upload(BodyStream(content)))
        await world.advance(seconds: 12)
        #expect(caller.errorCode == nil)
        await world.advance(seconds: 3)
        #expect(caller.errorCode == .originTimedOut)
        #expect(await world.shutDown())
    }
}
