public import CacheEngine
public import Tracing

/// An origin whose requests are spans.
///
///     HTTPCache(configuration: configuration, origin: TracedOrigin(CurlOrigin(), tracer: tracer))
///
/// A span begins with the request and ends with the response's body. It has the caller's span as its
/// parent: the span of the request that started the fetch, if several wait for it. A response from
/// the cache has no span. The span's context is added to the request's fields.
public struct TracedOrigin<Base: Origin>: Origin {
    private let base: Base
    private let tracer: any Tracer

    /// Creates an origin that reports the requests to `base`.
    public init(_ base: Base, tracer: any Tracer = InstrumentationSystem.tracer) {
        self.base = base
        self.tracer = tracer
    }

    /// Sends the request within a span.
    public func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        let span = tracer.startSpan(
            request.method.name,
            context: .current ?? .topLevel,
            ofKind: .client
        )
        span.attributes["http.request.method"] = request.method.name
        span.attributes["url.full"] = request.urlWithoutSecrets
        var request = request
        tracer.inject(span.context, into: &request.fields, using: FieldInjector())
        do {
            var response = try await ServiceContext.$current.withValue(span.context) {
                [request] in try await base.fetch(request)
            }
            span.attributes["http.response.status_code"] = response.status
            if response.status >= 400 { span.setStatus(SpanStatus(code: .error)) }
            if response.body.availableChunk != nil {
                span.end()
            } else {
                let body = response.body
                response.body = BodyStream(TracedBody(body, span), count: body.count)
            }
            return response
        } catch {
            span.fail(error)
            throw error
        }
    }
}

/// A body whose end is the end of a span.
///
/// `@unchecked Sendable`: a body source has one reader at a time, and is never cancelled while it is
/// read, so no two calls use `iterator` at once.
private final class TracedBody: BodySource, @unchecked Sendable {
    private var iterator: BodyStream.AsyncIterator?
    private let span: any Span

    init(_ body: BodyStream, _ span: any Span) {
        iterator = body.makeAsyncIterator()
        self.span = span
    }

    func next() async throws -> ByteChunk? {
        do {
            let chunk = try await iterator?.next()
            if chunk == nil { span.end() }
            return chunk
        } catch {
            span.fail(error)
            throw error
        }
    }

    /// Ends the span without an error: the reader has read enough.
    func cancel() {
        iterator = nil
        span.end()
    }
}

extension Span {
    fileprivate func fail(_ error: any Error) {
        recordError(error)
        setStatus(SpanStatus(code: .error))
        end()
    }
}

/// Writes a span's context to the fields of a request.
private struct FieldInjector: Injector {
    func inject(_ value: String, forKey key: String, into fields: inout HeaderFields) {
        fields[key] = value
    }
}
