import CacheTestSupport
import Testing

@testable import CacheEngine

/// Requests that join a flight after its head, while a body arrives that is too large to be kept.
@Suite(.eachWay) struct LateReaderTests {
    private static let url = "http://example.com/large"
    private static let pieceBytes = 64 << 10
    private static let pieces = 64

    private static func configuration() -> HTTPCache.Configuration {
        var configuration = HTTPCache.Configuration(memory: .megabytes(1))
        configuration.originLimits.windowSize = .bytes(4 * pieceBytes)
        return configuration
    }

    /// The HEAD declines the body, in some orders before its reader has joined it.
    @Test func headBehindTheHeadDoesNotEndTheBodyOfAnother() async throws {
        for seed in 0..<64 as Range<UInt64> {
            let origin = HeldOrigin()
            let world = try await SimulatedCache(
                seed: seed,
                configuration: Self.configuration(),
                origin: origin
            )
            let reader = await world.answer(CacheRequest(url: Self.url))
            let body = ManualBody()
            for number in 0..<Self.pieces {
                let byte = UInt8(truncatingIfNeeded: number)
                body.feed(ByteChunk([UInt8](repeating: byte, count: Self.pieceBytes)))
            }
            body.finish()
            let fields: HeaderFields = [
                "Cache-Control": "max-age=60", "Content-Length": "\(Self.pieces * Self.pieceBytes)",
            ]
            origin.held.first?.answer(fields: fields, body: body)
            let head = world.ask(CacheRequest(method: .head, url: Self.url))
            await world.settle()
            #expect(reader.isComplete, "seed \(seed)")
            #expect(reader.bytes.count == Self.pieces * Self.pieceBytes, "seed \(seed)")
            for exchange in origin.held { exchange.answer(body: "") }
            await world.settle()
            #expect(head.isComplete, "seed \(seed)")
            #expect(await world.shutDown(), "seed \(seed)")
        }
    }
}
