import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

/// The delivery of a body to its readers and to the store.
@Suite(.timeLimit(.minutes(1))) struct BodyDeliveryTests {
    /// A body whose pieces all wait already; the task that reads it is cancelled at the second one.
    private final class CancellingBody: BodySource {
        let reads = Atomic(0)

        func next() async throws -> ByteChunk? {
            let read = reads.add(1, ordering: .relaxed).newValue
            if read == 2 { withUnsafeCurrentTask { $0?.cancel() } }
            return read <= 100 ? ByteChunk("piece") : nil
        }

        func cancel() {}
    }

    /// A body of single bytes.
    private final class SingleBytes: BodySource {
        static let count = 20_000
        private let sent = Atomic(0)

        func next() async throws -> ByteChunk? {
            let number = sent.add(1, ordering: .relaxed).oldValue
            return number < Self.count ? ByteChunk([UInt8(truncatingIfNeeded: number)]) : nil
        }

        func cancel() {}
    }

    @Test("the bytes of a body that comes byte by byte are kept together")
    func singleBytesAreKeptTogether() async throws {
        let origin = ScriptedOrigin { _, _ in
            OriginResponse(
                status: 200,
                fields: ["Cache-Control": "max-age=60"],
                body: BodyStream(SingleBytes())
            )
        }
        let cache = try await HTTPCache(configuration: .ephemeral(), origin: origin)
        let response = try await cache.respond(to: .page)
        await cache.waitUntilIdle()
        var pieceCount = 0
        var bytes: [UInt8] = []
        for try await piece in response.body {
            pieceCount += 1
            bytes += piece.array
        }
        let expected = (0..<SingleBytes.count).map { UInt8(truncatingIfNeeded: $0) }
        #expect(bytes == expected)
        #expect(pieceCount <= SingleBytes.count / 4_096 + 1)
        let stored = try await cache.respond(to: .page)
        #expect(try await stored.body.collect().array == expected)
        #expect(stored.info.source == .fresh)
        await cache.shutDown()
    }

    @Test func cancelledDeliveryEndsThoughPiecesWait() async throws {
        let source = CancellingBody()
        let origin = ScriptedOrigin { _, _ in
            OriginResponse(
                status: 200,
                fields: ["Cache-Control": "max-age=60"],
                body: BodyStream(source)
            )
        }
        let cache = try await HTTPCache(configuration: .ephemeral(), origin: origin)
        let response = try await cache.respond(to: .page)
        await #expect(throws: CacheError.self) { try await response.body.collect() }
        #expect(source.reads.load(ordering: .relaxed) == 2)
        await cache.shutDown()
    }
}
