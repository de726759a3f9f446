public import CacheEngine
import Synchronization

/// An origin that follows a test's script and records its requests.
public final class ScriptedOrigin: Origin {
    /// Returns the answer to a request; `number` counts from 1.
    public typealias Script =
        @Sendable (_ request: OriginRequest, _ number: Int) async throws ->
        OriginResponse

    private struct State {
        var script: Script
        var requests: [OriginRequest] = []
    }

    private let state: Mutex<State>

    /// Creates an origin that follows `script`.
    public init(_ script: @escaping Script) { state = Mutex(State(script: script)) }

    /// Creates an origin that always returns the same response.
    public convenience init(
        status: Int = 200,
        fields: HeaderFields = ["Cache-Control": "max-age=60"],
        body: String = "hello"
    ) {
        self.init { _, _ in .whole(status: status, fields: fields, body: body) }
    }

    /// The requests so far, in order of arrival.
    public var requests: [OriginRequest] { state.withLock { $0.requests } }

    /// The number of requests so far.
    public var count: Int { state.withLock { $0.requests.count } }

    /// Follows another script from now on.
    public func follow(_ script: @escaping Script) { state.withLock { $0.script = script } }

    /// Fails every request from now on, by `CacheError.Code.originFailed`, as if connections broke off.
    ///
    /// A network that is down gives `originUnreachable`, which also answers later requests for a time:
    /// `follow` a script that throws it to test that.
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
    /// Creates a response with a complete body and a Content-Length.
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
