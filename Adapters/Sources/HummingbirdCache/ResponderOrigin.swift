public import CacheEngine
import HTTPTypes
public import Hummingbird
import NIOBridge
import NIOCore

/// Routes of this program as the origin of a cache.
///
/// A middleware's `next` cannot be an origin: it ends with its request, but a fetch serves every
/// request that waits for it. The cached routes therefore have a router of their own, whose
/// responder is called here, and a context that belongs to no client's connection.
public struct ResponderOrigin<Responder: HTTPResponder>: Origin
where Responder.Context: RequestContext {
    private let responder: Responder
    private let makeContext: @Sendable () -> Responder.Context

    /// Creates an origin from the routes of `responder`, with a new context for each request.
    public init(
        _ responder: Responder,
        makeContext: @escaping @Sendable () -> Responder.Context
    ) {
        self.responder = responder
        self.makeContext = makeContext
    }

    /// Calls the routes.
    public func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        let asked = try Request(request)
        let context = makeContext()
        let response: Response
        do {
            response = try await responder.respond(to: asked, context: context)
        } catch let error as any HTTPResponseError {
            response = try error.response(from: asked, context: context)
        }
        return OriginResponse(
            status: response.status.code,
            fields: HeaderFields(response.headers),
            body: BodyStream(WrittenBody(response.body), count: response.body.contentLength)
        )
    }
}

extension Request {
    fileprivate init(_ request: OriginRequest) throws {
        let url = request.url
        guard let schemeEnd = url.firstRange(of: "://"),
            let method = HTTPRequest.Method(request.method.name)
        else { throw CacheError(.requestInvalid, detail: "No absolute URL, or no method") }
        let rest = url[schemeEnd.upperBound...]
        // By bytes, as the key is read: a combining mark would join the slash.
        let pathStart = rest.utf8.firstIndex { $0 == 0x2F || $0 == 0x3F } ?? rest.endIndex
        let path = rest[pathStart...]
        self.init(
            head: HTTPRequest(
                method: method,
                scheme: String(url[..<schemeEnd.lowerBound]),
                authority: String(rest[..<pathStart]),
                path: path.utf8.first == 0x2F ? String(path) : "/" + path,
                headerFields: HTTPFields(request.fields)
            ),
            body: request.body.map { RequestBody(asyncSequence: $0.map { ByteBuffer($0) }) }
                ?? RequestBody(buffer: ByteBuffer())
        )
    }
}

/// A body written by a route and read at the cache's pace.
///
/// The writer suspends while the cache does not read.
private final class WrittenBody: BodySource {
    private let body: BufferBody<RequestBody>
    private let writing: Task<Void, Never>

    init(_ written: ResponseBody) {
        // Hummingbird's pipe with back-pressure, which is intended for requests.
        let (pipe, source) = RequestBody.makeStream()
        body = BufferBody(pipe)
        writing = Task {
            do {
                try await written.write(PipeWriter(source: source))
                source.finish()
            } catch {
                source.finish(error)
            }
        }
    }

    func next() async throws -> ByteChunk? { try await body.next() }

    func cancel() {
        writing.cancel()
        body.cancel()
    }
}

private struct PipeWriter: ResponseBodyWriter {
    let source: RequestBody.Source

    mutating func write(_ buffer: ByteBuffer) async throws {
        try Task.checkCancellation()
        await source.yield(buffer)
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws { source.finish() }
}
