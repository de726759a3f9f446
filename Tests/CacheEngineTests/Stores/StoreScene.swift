import CacheEngine
import CacheTestSupport
import Synchronization

/// A cache without memory, in front of a store with planned misdeeds.
struct StoreScene {
    static let request = CacheRequest(url: "http://example.com/a")

    let clock = TestClock()
    /// The wrapped store, without misdeeds.
    let honest: InMemoryStore
    let store: NemesisStore
    let simulation: SimulatedCache
    var cache: HTTPCache { simulation.cache }

    init(
        _ origin: any Origin = Self.countingOrigin(),
        on honest: InMemoryStore = InMemoryStore(),
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws {
        self.honest = honest
        store = NemesisStore(honest, clock: clock)
        var configuration = HTTPCache.Configuration(memory: .disabled, backing: .custom(store))
        change(&configuration)
        simulation = try await SimulatedCache(
            configuration: configuration,
            clock: clock,
            origin: origin
        )
    }

    /// An origin whose bodies count the responses of each URL: "v1", "v2".
    static func countingOrigin(
        _ fields: HeaderFields = ["Cache-Control": "max-age=600", "Cache-Tag": "news"]
    ) -> ScriptedOrigin {
        let counts = Mutex<[String: Int]>([:])
        return ScriptedOrigin { request, _ in
            guard request.method == .get else { return .whole(status: 200) }
            let number = counts.withLock { counts in
                counts[request.url, default: 0] += 1
                return counts[request.url, default: 0]
            }
            return .whole(fields: fields, body: "v\(number)")
        }
    }

    /// Answers a request without advancing the clock.
    func get(
        _ request: CacheRequest = StoreScene.request,
        policy: CachePolicy? = nil
    ) async -> Caller { await simulation.answer(request, policy: policy) }

    /// The body that answers a request now.
    func body(
        _ request: CacheRequest = StoreScene.request,
        policy: CachePolicy? = nil
    ) async -> String { await get(request, policy: policy).text }

    /// Runs work that may throw, and records its result.
    func attempt(_ work: @escaping @Sendable (HTTPCache) async throws -> Void) async -> Attempt {
        let attempt = Attempt()
        let task = simulation.executor.start { [cache] in
            do {
                try await work(cache)
                attempt.end(.success(()))
            } catch {
                attempt.end(.failure(error))
            }
        }
        attempt.attach(task)
        await simulation.settle()
        return attempt
    }

    /// Makes the first `count` calls of a method fail; all other calls succeed.
    static func failing(
        _ method: NemesisCall.Method,
        first count: Int = .max,
        with misdeed: Misdeed = .throwsBefore
    ) -> NemesisPlan {
        let failed = Mutex(0)
        return .scripted { call in
            guard call.method == method else { return .none }
            let mustFail = failed.withLock { failed in
                failed += 1
                return failed <= count
            }
            return mustFail ? misdeed : .none
        }
    }
}

/// A running operation and its result.
final class Attempt: Sendable {
    private struct State {
        var result: Result<Void, any Error>?
        var task: Task<Void, Never>?
    }

    private let state = Mutex(State())

    var hasEnded: Bool { state.withLock { $0.result != nil } }
    var hasSucceeded: Bool {
        if case .success = state.withLock({ $0.result }) { return true }
        return false
    }
    var error: (any Error)? {
        if case .failure(let error) = state.withLock({ $0.result }) { return error }
        return nil
    }
    var code: CacheError.Code? { (error as? CacheError)?.code }

    func end(_ result: Result<Void, any Error>) { state.withLock { $0.result = result } }
    func attach(_ task: Task<Void, Never>) { state.withLock { $0.task = task } }
    func cancel() { state.withLock { $0.task }?.cancel() }
}
