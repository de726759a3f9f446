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
        let race = Race<OriginResponse>()

        init(_ request: OriginRequest) { self.request = request }

        /// Whether the request has neither an answer nor a failure yet.
        public var isHeld: Bool { race.isOpen }

        /// Answers with a head and with a body that the test feeds.
        public func answer(
            status: Int = 200,
            fields: HeaderFields = ["Cache-Control": "max-age=60"],
            body: ManualBody
        ) {
            race.finish(.success(.init(status: status, fields: fields, body: body.stream())))
        }

        /// Answers with a complete response.
        public func answer(
            status: Int = 200,
            fields: HeaderFields = ["Cache-Control": "max-age=60"],
            body: String = "hello"
        ) {
            race.finish(.success(.whole(status: status, fields: fields, body: body)))
        }

        /// Fails the request before its head.
        public func fail(_ error: any Error = CacheError(.originFailed, detail: "refused")) {
            race.finish(.failure(error))
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
        switch cancellation {
        case .honoured: return try await exchange.race.result()
        case .ignored: return try await exchange.race.resultDespiteCancellation()
        }
    }
}
