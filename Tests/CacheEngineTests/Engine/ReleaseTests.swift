import CacheTestSupport
import HTTPCaching
import Synchronization
import Testing

@testable import CacheEngine

/// Nothing that a request leaves behind keeps the cache after its shutdown, or the client.
@Suite(.timeLimit(.minutes(2))) struct ReleaseTests {
    /// What the origin answers.
    enum Answering: String, CaseIterable {
        case stored, unstorable, varied, tooLarge, brokenOff, refused, confirmed
    }

    /// What becomes of the client.
    enum Leaving: String, CaseIterable {
        case readsAll, readsNothing, readsTheBeginning, leavesBeforeTheHead, leavesBesideAnother
    }

    /// How the client asks.
    enum Asking: String, CaseIterable { case inATask, withoutATask }

    /// A client whose request has a hook that holds its work, as that of a server does.
    private final class Client: Sendable {
        let answer = PendingAnswer()
        let response = Race<CacheResponse>()

        func request(_ url: String) -> CacheRequest {
            var request = CacheRequest(url: url)
            request.options.onInformational = { [answer] _, _ in answer.cancel() }
            return request
        }

        func ask(_ cache: HTTPCache, _ url: String, _ asking: Asking) {
            switch asking {
            case .inATask:
                answer.attach(
                    Task { [self] in
                        do {
                            response.finish(.success(try await cache.respond(to: request(url))))
                        } catch { response.finish(.failure(error)) }
                    }
                )
            case .withoutATask:
                cache.begin(request(url), answer) { [self] in response.finish($0) }
            }
        }

        /// Reads so many pieces of the body.
        func read(_ count: Int) async {
            guard let body = try? await response.result().body, count > 0 else { return }
            var left = count
            do {
                for try await _ in body {
                    left -= 1
                    if left <= 0 { return }
                }
            } catch {}
        }
    }

    /// The objects of a request that must be released.
    private struct Left: Sendable {
        let services = WeakReference<Services>()
        let work = WeakReference<PendingAnswer>()
    }

    @Test(arguments: Asking.allCases, Answering.allCases)
    func nothingKeepsTheCacheOrTheClient(_ asking: Asking, _ answering: Answering) async throws {
        for leaving in Leaving.allCases {
            let left = Left()
            try await serve(asking, answering, leaving, left)
            let isNothing = await eventually {
                left.services.isReleased && left.work.isReleased
            }
            #expect(isNothing, "\(leaving)")
        }
    }

    private func serve(
        _ asking: Asking,
        _ answering: Answering,
        _ leaving: Leaving,
        _ left: Left
    ) async throws {
        let origin = HeldOrigin()
        let clock = TestClock()
        var configuration = HTTPCache.Configuration(memory: .megabytes(4))
        configuration.clock = clock
        configuration.backing = .disk(path: "/cache", capacity: .megabytes(16))
        configuration.backing.fileSystem = .replaced(FaultyFileSystem(seed: 1))
        if answering == .tooLarge { configuration.backing.maximumEntryShare = 0.0001 }
        let cache = try await HTTPCache(configuration: configuration, origin: origin)
        left.services.note(cache.services)
        if answering == .confirmed { try await storeStale(in: cache, origin, clock) }
        let before = origin.count

        let clients = (leaving == .leavesBesideAnother ? [0, 1] : [0]).map { _ in Client() }
        left.work.note(clients[0].answer)
        for client in clients { client.ask(cache, Stage.url, asking) }
        #expect(await eventually { origin.count > before })
        if leaving == .leavesBeforeTheHead || leaving == .leavesBesideAnother {
            clients[0].answer.cancel()
        }
        if let exchange = origin.exchanges.last { answer(exchange, answering) }
        switch leaving {
        case .readsAll: await clients[0].read(.max)
        case .readsNothing: await clients[0].read(0)
        case .readsTheBeginning: await clients[0].read(1)
        // The other client may have to fetch on its own, so it does not wait either.
        case .leavesBeforeTheHead, .leavesBesideAnother: break
        }
        for client in clients { client.answer.cancel() }
        await cache.shutDown()
    }

    private func storeStale(
        in cache: HTTPCache,
        _ origin: HeldOrigin,
        _ clock: TestClock
    ) async throws {
        let first = Client()
        first.ask(cache, Stage.url, .inATask)
        #expect(await eventually { origin.count == 1 })
        origin.exchanges[0].answer(fields: ["Cache-Control": "max-age=60", "ETag": "\"1\""])
        await first.read(.max)
        await cache.waitUntilIdle()
        clock.advance(seconds: 61)
    }

    private func answer(_ exchange: HeldOrigin.Exchange, _ answering: Answering) {
        let body = ManualBody()
        var fields: HeaderFields = ["Cache-Control": "max-age=60"]
        switch answering {
        case .refused: return exchange.fail()
        case .confirmed: return exchange.answer(status: 304, fields: ["ETag": "\"1\""], body: "")
        case .unstorable: fields["Cache-Control"] = "no-store"
        case .varied: fields["Vary"] = "X-Form"
        case .stored, .tooLarge, .brokenOff: break
        }
        exchange.answer(fields: fields, body: body)
        for _ in 0..<8 { body.feed(String(repeating: "x", count: 10_000)) }
        if answering == .brokenOff {
            body.fail(CacheError(.originFailed, detail: "The network is gone"))
        } else {
            body.finish()
        }
    }
}
