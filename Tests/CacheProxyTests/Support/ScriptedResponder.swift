import CacheEngine
import Synchronization

@testable import CacheProxy

/// A responder with scripted responses; it records its requests.
final class ScriptedResponder: TaskResponder {
    typealias Script = @Sendable (CacheRequest) async throws -> CacheResponse

    let asked = Mutex<[CacheRequest]>([])
    private let cached: @Sendable (CacheRequest) -> CacheResponse?
    private let script: Script

    convenience init(_ script: @escaping Script) { self.init(cached: { _ in nil }, script) }

    /// A responder that answers every request from memory.
    static func hot(_ cached: @escaping @Sendable (CacheRequest) -> CacheResponse) -> Self {
        Self(cached: cached, { _ in CacheResponse(status: 404) })
    }

    init(
        cached: @escaping @Sendable (CacheRequest) -> CacheResponse?,
        _ script: @escaping Script
    ) {
        self.cached = cached
        self.script = script
    }

    func immediateAnswer(
        to request: CacheRequest,
        _ read: (borrowing BorrowedResponse) -> Void
    ) -> ImmediateAnswer {
        guard let response = cached(request) else { return .none }
        asked.withLock { $0.append(request) }
        return .response(response)
    }

    func respond(to request: CacheRequest) async throws -> CacheResponse {
        asked.withLock { $0.append(request) }
        return try await script(request)
    }

    var urls: [String] { asked.withLock { $0.map(\.url) } }
}

extension CacheResponse {
    static func text(_ text: String, _ fields: HeaderFields = [:], status: Int = 200)
        -> CacheResponse
    {
        CacheResponse(status: status, fields: fields, body: BodyStream(ByteChunk(text)))
    }
}

/// A body that the test feeds piece by piece.
final class FedBody: BodySource {
    private let stream: AsyncThrowingStream<ByteChunk, any Error>
    private let feed: AsyncThrowingStream<ByteChunk, any Error>.Continuation
    private let iterator: Iterator
    let cancelled = Atomic(false)
    let delivered = Atomic(0)

    /// `@unchecked Sendable`: a body has one reader at a time.
    private final class Iterator: @unchecked Sendable {
        var inner: AsyncThrowingStream<ByteChunk, any Error>.AsyncIterator
        init(_ inner: AsyncThrowingStream<ByteChunk, any Error>.AsyncIterator) {
            self.inner = inner
        }
        func next() async throws -> ByteChunk? { try await inner.next(isolation: nil) }
    }

    init() {
        (stream, feed) = AsyncThrowingStream.makeStream()
        iterator = Iterator(stream.makeAsyncIterator())
    }

    func give(_ text: String) { feed.yield(ByteChunk(text)) }
    func give(_ chunk: ByteChunk) { feed.yield(chunk) }
    func end() { feed.finish() }
    func fail() { feed.finish(throwing: CacheError(.bodyTruncated, detail: "scripted")) }

    func next() async throws -> ByteChunk? {
        let chunk = try await iterator.next()
        if let chunk { delivered.add(chunk.count, ordering: .relaxed) }
        return chunk
    }

    func cancel() { cancelled.store(true, ordering: .relaxed) }
}

/// Runs a server for the length of one test.
func withServer<Result>(
    _ responder: any Responder,
    configure: (inout ServerConfiguration) -> Void = { _ in },
    report: @escaping @Sendable (String) -> Void = { _ in },
    _ body: (ProxyServer) async throws -> Result
) async throws -> Result {
    var configuration = ServerConfiguration(
        address: .tcp(host: "127.0.0.1", port: 0),
        name: "me"
    )
    configure(&configuration)
    let server = try ProxyServer(configuration, responder: responder, report: report)
    do {
        let result = try await body(server)
        await server.stop()
        return result
    } catch {
        await server.stop()
        throw error
    }
}
