public import CacheEngine
import Synchronization

/// An origin that holds every request until the test answers it.
public final class HeldOrigin: Origin {
    /// The reaction of a held request to the cancellation of its task.
    public enum Cancellation: Hashable, Sendable {
        /// The request ends with `CancellationError`, as it should.
        case honoured
        /// The request stays held, which is the worst that an origin can do.
        case ignored
    }

    /// One held request.
    public final class Exchange: Sendable {
        /// The request that the origin received.
        public let request: OriginRequest
        private let state = Mutex<State>(.open)

        private enum State {
            case open
            case held(CheckedContinuation<OriginResponse, any Error>)
            case decided(Result<OriginResponse, any Error>)
            case over
        }

        init(_ request: OriginRequest) { self.request = request }

        /// Whether the request has neither an answer nor a failure yet.
        public var isHeld: Bool {
            state.withLock {
                switch $0 {
                case .open, .held: true
                case .decided, .over: false
                }
            }
        }

        /// Answers with a head and with a body that the test feeds.
        public func answer(
            status: Int = 200,
            fields: HeaderFields = ["Cache-Control": "max-age=60"],
            body: ManualBody
        ) {
            finish(.success(.init(status: status, fields: fields, body: body.stream())))
        }

        /// Answers with a complete response.
        public func answer(
            status: Int = 200,
            fields: HeaderFields = ["Cache-Control": "max-age=60"],
            body: String = "hello"
        ) {
            finish(.success(.whole(status: status, fields: fields, body: body)))
        }

        /// Fails the request before its head.
        public func fail(_ error: any Error = CacheError(.originFailed, detail: "refused")) {
            finish(.failure(error))
        }

        func finish(_ result: Result<OriginResponse, any Error>) {
            let held = state.withLock { state -> CheckedContinuation<OriginResponse, any Error>? in
                switch state {
                case .open:
                    state = .decided(result)
                    return nil
                case .held(let continuation):
                    state = .over
                    return continuation
                case .decided, .over: return nil
                }
            }
            held?.resume(with: result)
        }

        func result() async throws -> OriginResponse {
            try await withCheckedThrowingContinuation { continuation in
                let decided = state.withLock { state -> Result<OriginResponse, any Error>? in
                    if case .decided(let result) = state {
                        state = .over
                        return result
                    }
                    state = .held(continuation)
                    return nil
                }
                if let decided { continuation.resume(with: decided) }
            }
        }
    }

    private let cancellation: Cancellation
    private let state = Mutex<[Exchange]>([])

    /// Creates an origin that holds every request.
    public init(cancellation: Cancellation = .honoured) { self.cancellation = cancellation }

    /// All requests so far, in order of arrival.
    public var exchanges: [Exchange] { state.withLock { $0 } }
    /// The number of requests so far.
    public var count: Int { exchanges.count }
    /// The requests that have neither been answered nor cancelled.
    public var held: [Exchange] { exchanges.filter(\.isHeld) }

    /// Holds the request until the test answers it.
    public func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        let exchange = Exchange(request)
        state.withLock { $0.append(exchange) }
        guard cancellation == .honoured else { return try await exchange.result() }
        return try await withTaskCancellationHandler {
            try await exchange.result()
        } onCancel: {
            exchange.finish(.failure(CancellationError()))
        }
    }
}
