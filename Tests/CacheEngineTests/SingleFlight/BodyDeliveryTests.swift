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
