import CacheEngine
import CacheTestSupport
import HTTPCaching
import Synchronization

/// A cache with a test clock, in front of a scripted origin.
struct Stage {
    static let url = "http://example.com/a"
    /// The start of the clock: Tue, 14 Nov 2023 22:13:20 GMT.
    static let startSeconds: Int64 = 1_700_000_000

    let clock: TestClock
    let origin: ScriptedOrigin
    let cache: HTTPCache

    init(
        _ origin: ScriptedOrigin = ScriptedOrigin(),
        clock: TestClock = TestClock(),
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws {
        var configuration = HTTPCache.Configuration(memory: .megabytes(32))
        change(&configuration)
        configuration.clock = clock
        self.clock = clock
        self.origin = origin
        cache = try await HTTPCache(configuration: configuration, origin: origin)
    }

    /// A stage whose origin serves a resource with validators.
    init(
        _ resource: Resource,
        clock: TestClock = TestClock(),
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws {
        try await self.init(
            ScriptedOrigin { request, _ in resource.answer(request) },
            clock: clock,
            change
        )
    }

    /// A stage with a stale entry, whose resource has changed and forbids storing.
    static func afterUnstorableChange() async throws -> Stage {
        let resource = Resource()
        let stage = try await Stage(resource)
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        resource.change(fields: ["Cache-Control": "no-store"])
        resource.change(body: "two", tag: "\"2\"")
        return stage
    }

    /// Sends a request, reads the body to its end, and waits for background work.
    func send(_ request: CacheRequest, policy: CachePolicy? = nil) async throws -> Answer {
        let response = try await cache.respond(to: request, policy: policy)
        let body = try await response.body.collect()
        await cache.waitUntilIdle()
        return Answer(
            status: response.status,
            fields: response.fields,
            body: body.text,
            info: response.info
        )
    }

    func get(
        _ url: String = Stage.url,
        _ fields: HeaderFields = [:],
        policy: CachePolicy? = nil,
        method: HTTPMethod = .get
    ) async throws -> Answer {
        try await send(CacheRequest(method: method, url: url, fields: fields), policy: policy)
    }

    /// Returns whether an entry of any age is stored for the request.
    func holds(_ url: String = Stage.url, _ fields: HeaderFields = [:]) async throws -> Bool {
        try await cache.storedResponse(for: CacheRequest(url: url, fields: fields)) != nil
    }

    func end() async { await cache.shutDown() }

    /// The date that many seconds after the start of the clock, as a field value.
    static func date(_ seconds: Int) -> String {
        HTTPDate.string(startSeconds + Int64(seconds))
    }
}

/// A response whose body has been read to its end.
struct Answer: Sendable {
    let status: Int
    let fields: HeaderFields
    let body: String
    let info: CacheInfo

    var source: CacheInfo.Source { info.source }
}

/// A resource with an entity tag that evaluates conditions and HEAD as an origin does.
final class Resource: Sendable {
    private struct State {
        var fields: HeaderFields
        var body: String
        var tag: String
    }

    private let state: Mutex<State>

    init(
        _ fields: HeaderFields = ["Cache-Control": "max-age=60"],
        body: String = "one",
        tag: String = "\"1\""
    ) {
        state = Mutex(State(fields: fields, body: body, tag: tag))
    }

    func change(body: String, tag: String) {
        state.withLock {
            $0.body = body
            $0.tag = tag
        }
    }

    func change(fields: HeaderFields) { state.withLock { $0.fields = fields } }

    func answer(_ request: OriginRequest) -> OriginResponse {
        let state = state.withLock { $0 }
        var fields = state.fields
        fields["ETag"] = state.tag
        if request.fields["If-None-Match"]?.contains(state.tag) == true {
            return OriginResponse(status: 304, fields: fields)
        }
        if request.method == .head {
            fields["Content-Length"] = String(state.body.utf8.count)
            return OriginResponse(status: 200, fields: fields)
        }
        return .whole(fields: fields, body: state.body)
    }
}

extension HTTPMethod {
    static let all: [HTTPMethod] = [.get, .head, .post, .put, .patch, .delete, .options, .query]
}
