import CacheEngine
import CacheTestSupport

/// A cache between a logging origin and clients whose responses are checked.
struct OracleStage: Sendable {
    let clock: TestClock
    let origin: OracleOrigin
    let cache: HTTPCache
    private let terms: AllowedAnswers.Terms

    init(
        varies: Bool,
        _ validators: Representation.Validators,
        _ terms: AllowedAnswers.Terms
    ) async throws {
        self.terms = terms
        clock = TestClock(startSeconds: Moment.start)
        origin = OracleOrigin(
            clock,
            validators: validators,
            cacheControl: terms.cacheControl,
            varies: varies
        )
        var configuration = HTTPCache.Configuration(memory: .megabytes(4))
        configuration.clock = clock
        configuration.caching.conditionMiss = terms.conditionMiss
        cache = try await HTTPCache(configuration: configuration, origin: origin)
    }

    /// Sends the request, reads the response to its end, and returns its faults.
    func faults(of request: CacheRequest) async -> [String] {
        let asked = Asked(request.method, request.fields)
        let direct = origin.reply(to: asked)
        let own = origin.log(request.url).count
        let (told, setsCookie) = await tell(request)
        await cache.waitUntilIdle()
        let exchanges = origin.log(request.url)
        let allowed = AllowedAnswers(
            asked: asked,
            nowSeconds: clock.nowSeconds,
            direct: direct,
            exchanges: exchanges,
            own: own,
            terms: terms
        )()
        var faults: [String] = []
        if !allowed.contains(told) {
            let expected = allowed.map(\.description).sorted().joined(separator: ", ")
            faults.append("told \(told), allowed: \(expected)")
        }
        faults += traces(of: request, asked, exchanges[own...], setsCookie: setsCookie)
        return faults
    }

    private func tell(_ request: CacheRequest) async -> (Told, setsCookie: Bool) {
        do {
            let response = try await cache.respond(to: request)
            let content = try await response.body.collect().text
            return (Told(response, content: content), response.fields.contains("Set-Cookie"))
        } catch {
            return (.nothing, false)
        }
    }

    /// Faults that the response alone does not show.
    private func traces(
        of request: CacheRequest,
        _ asked: Asked,
        _ own: ArraySlice<OriginExchange>,
        setsCookie: Bool
    ) -> [String] {
        var faults: [String] = []
        if asked.onlyIfCached, asked.isRead, !own.isEmpty {
            faults.append("only-if-cached: the origin was asked")
        }
        if setsCookie, !own.contains(where: { $0.reply.setsCookie }) {
            faults.append("told another client's Set-Cookie")
        }
        // RFC 9110 §13.2.1: dropping a precondition of a PUT loses an update.
        if !asked.isRead {
            let conditions = ["If-Match", "If-None-Match", "If-Unmodified-Since"]
            let isKept = own.contains { exchange in
                exchange.asked.method == request.method
                    && conditions.allSatisfy { exchange.fields[$0] == request.fields[$0] }
            }
            if !isKept { faults.append("a precondition did not reach the origin") }
        }
        return faults
    }
}
