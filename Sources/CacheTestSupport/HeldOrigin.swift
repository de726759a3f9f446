public import CacheEngine
import Synchronization

/// An origin that holds every request until the test answers it.
public final class HeldOrigin: Origin {
    /// What a request does when its task is cancelled while it is held.
    public enum Cancellation: Hashable, Sendable {
        /// It ends with `CancellationError`, as an origin should.
        case honoured
        /// It hangs on: the worst an origin can do.
        case ignored
    }

    /// One request, held.
    public final class Exchange: Sendable {
        /// What was asked.
        public let request: OriginRequest
        private let state = Mutex<State>(.open)

        private enum State {
            case open
            case held(CheckedContinuation<OriginResponse, any Error>)
            case decided(Result<OriginResponse, any Error>)
            case over
        }

        init(_ request: OriginRequest) { self.request = request }

        /// Whether neither an answer nor a failure has been given.
        public var isHeld: Bool {
            state.withLock {
                switch $0 {
                case .open, .held: true
                case .decided, .over: false
                }
            }
        }

        /// Answers with a head, and a body that the test feeds.
        public func answer(
            status: Int = 200,
            fields: HeaderFields = ["Cache-Control": "max-age=60"],
            body: ManualBody
        ) {
            finish(.success(.init(status: status, fields: fields, body: body.stream())))
        }

        /// Answers with a whole response.
        public func answer(
            status: Int = 200,
            fields: HeaderFields = ["Cache-Control": "max-age=60"],
            body: String = "hello"
        ) {
            finish(.success(.whole(status: status, fields: fields, body: body)))
        }

        /// Fails before any head.
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

    /// An origin that holds what it is asked.
    public init(cancellation: Cancellation = .honoured) { self.cancellation = cancellation }

    /// Every request so far, in the order they came.
    public var exchanges: [Exchange] { state.withLock { $0 } }
    /// How many requests came.
    public var count: Int { exchanges.count }
    /// Those that are neither answered nor cancelled.
    public var held: [Exchange] { exchanges.filter(\.isHeld) }

    /// Holds the request.
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
