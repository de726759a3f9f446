public import CacheEngine
import Synchronization

/// An origin that does what a test tells it to, and remembers what it was asked.
public final class ScriptedOrigin: Origin {
    /// What to answer to a request; `number` counts from 1.
    public typealias Script =
        @Sendable (_ request: OriginRequest, _ number: Int) async throws ->
        OriginResponse

    private struct State {
        var script: Script
        var requests: [OriginRequest] = []
    }

    private let state: Mutex<State>

    /// An origin that follows `script`.
    public init(_ script: @escaping Script) { state = Mutex(State(script: script)) }

    /// An origin that always gives the same answer.
    public convenience init(
        status: Int = 200,
        fields: HeaderFields = ["Cache-Control": "max-age=60"],
        body: String = "hello"
    ) {
        self.init { _, _ in .whole(status: status, fields: fields, body: body) }
    }

    /// The requests so far, in the order they came.
    public var requests: [OriginRequest] { state.withLock { $0.requests } }

    /// How many requests came.
    public var count: Int { state.withLock { $0.requests.count } }

    /// Follows another script from now on.
    public func follow(_ script: @escaping Script) { state.withLock { $0.script = script } }

    /// Fails every request from now on, as if the network were gone.
    public func cutOff() {
        follow { _, _ in throw CacheError(.originFailed, detail: "The network is gone") }
    }

    /// Answers as the script says.
    public func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        let (script, number) = state.withLock { state in
            state.requests.append(request)
            return (state.script, state.requests.count)
        }
        return try await script(request, number)
    }
}

extension OriginResponse {
    /// An answer whose body is all there, with its length announced.
    public static func whole(
        status: Int = 200,
        fields: HeaderFields = [:],
        body: String = ""
    ) -> OriginResponse {
        var fields = fields
        let chunk = ByteChunk(body)
        if !fields.contains("Content-Length") { fields["Content-Length"] = String(chunk.count) }
        return OriginResponse(status: status, fields: fields, body: BodyStream(chunk))
    }
}
