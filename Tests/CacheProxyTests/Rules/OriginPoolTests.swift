import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

@testable import CacheProxy

/// Requests that an event loop begins at a pool of origins.
@Suite struct OriginPoolTests {
    private static let plain = ["http://a:1", "http://b:1"].compactMap { OriginAddress($0) }

    /// The answer to a request that was begun; `nil` if the pool begins none.
    private static func begin(
        _ pool: OriginPool,
        _ url: String = "http://x/"
    ) async -> LoopAnswer? {
        await withUnsafeContinuation { continuation in
            let exchange = pool.begin(OriginRequest(url: url)) {
                continuation.resume(returning: $0)
            }
            if exchange == nil { continuation.resume(returning: nil) }
        }
    }

    private static func pool(
        _ addresses: [OriginAddress],
        _ executor: ThreadExecutor,
        _ origin: ScriptedOrigin
    ) -> OriginPool {
        OriginPool(addresses, name: "me", upstream: LoopedOrigin(origin, on: executor))
    }

    @Test func begunRequestsAreDistributedInTurn() async {
        let executor = ThreadExecutor()
        defer { executor.stop() }
        let origin = ScriptedOrigin()
        let pool = Self.pool(Self.plain, executor, origin)
        #expect(pool.isOnLoop)
        for _ in 0..<4 {
            guard case .response? = await Self.begin(pool, "http://x/page") else {
                Issue.record("the origin answers")
                return
            }
        }
        #expect(
            origin.requests.map(\.url)
                == ["http://a:1/page", "http://b:1/page", "http://a:1/page", "http://b:1/page"]
        )
        #expect(origin.requests.allSatisfy { $0.fields["Via"] == "1.1 me" })
        pool.shutDown()
    }

    @Test("a request that reached no origin is left to `fetch` if there is another origin")
    func unreachedRequestGoesElsewhere() async {
        let executor = ThreadExecutor()
        defer { executor.stop() }
        let origin = ScriptedOrigin { request, _ in
            if request.url.hasPrefix("http://b") { return .whole() }
            throw CacheError(.originUnreachable, detail: "Cannot connect")
        }
        let pool = Self.pool(Self.plain, executor, origin)
        guard case .unsent? = await Self.begin(pool) else {
            Issue.record("nothing was sent")
            return
        }
        #expect(pool.members.map { $0.downUntil != nil } == [true, false])
        let response = try? await pool.fetch(OriginRequest(url: "http://x/"))
        #expect(response?.status == 200)
        #expect(origin.requests.map(\.url) == ["http://a:1/", "http://b:1/"])
        pool.shutDown()

        let single = Self.pool([Self.plain[0]], executor, origin)
        guard case .failure(let error)? = await Self.begin(single) else {
            Issue.record("there is no other origin")
            return
        }
        #expect(OriginPool.isUnreached(error))
        single.shutDown()
    }

    @Test("an error after the connection is not tried elsewhere")
    func possiblySentRequestFails() async {
        let executor = ThreadExecutor()
        defer { executor.stop() }
        let origin = ScriptedOrigin { _, _ in
            throw CacheError(.originFailed, detail: "Recv failure: Connection reset by peer")
        }
        let pool = Self.pool(Self.plain, executor, origin)
        guard case .failure? = await Self.begin(pool) else {
            Issue.record("the request may have been sent")
            return
        }
        #expect(origin.count == 1)
        pool.shutDown()
    }

    @Test("no request is begun for origins with TLS, or through a client that cannot")
    func otherPoolsBeginNothing() async {
        let executor = ThreadExecutor()
        defer { executor.stop() }
        let origin = ScriptedOrigin()
        let secure = ["http://a:1", "https://b:1"].compactMap { OriginAddress($0) }
        let pool = Self.pool(secure, executor, origin)
        #expect(!pool.isOnLoop)
        if await Self.begin(pool) != nil { Issue.record("a request was begun") }
        pool.replace(Self.plain)
        #expect(pool.isOnLoop)
        pool.replace(Self.plain, upstream: origin)
        #expect(!pool.isOnLoop)
        if await Self.begin(pool) != nil { Issue.record("a request was begun") }
        #expect(origin.count == 0)
    }
}
