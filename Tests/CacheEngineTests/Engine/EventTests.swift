import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

/// Events name the request that they belong to.
@Suite struct EventTests {
    /// The events of a cache, in order.
    private final class Log: Sendable {
        private let events = Mutex<[CacheEvent]>([])

        func append(_ event: CacheEvent) { events.withLock { $0.append(event) } }

        var answers: [CacheEvent.Answer] {
            events.withLock { $0 }.compactMap { event in
                if case .answered(let answer) = event { answer } else { nil }
            }
        }

        /// Each other event as a word and the URL of its request.
        var others: [String] {
            events.withLock { $0 }.compactMap { event in
                switch event {
                case .answered, .storageFailed, .fleetFailed, .fleetLinked: nil
                case .refused(let reason, let request): "refused \(reason) \(request.url)"
                case .originFailed(_, let request): "failed \(request.url)"
                case .escaped(_, let request): "escaped \(request.url)"
                case .refreshed(let succeeded, let request): "refreshed \(succeeded) \(request.url)"
                case .hookFailed(_, let request): "hook \(request.url)"
                }
            }
        }
    }

    @Test func answersNameRequestStatusBytesAndTime() async throws {
        let log = Log()
        let clock = TestClock()
        let origin = ScriptedOrigin { request, _ in
            clock.advance(seconds: 2)
            return .whole(
                status: request.url.hasSuffix("gone") ? 404 : 200,
                fields: ["Cache-Control": "max-age=60"],
                body: "hello"
            )
        }
        let stage = try await Stage(origin, clock: clock) { $0.hooks.onEvent = log.append }
        _ = try await stage.get()
        _ = try await stage.get()
        _ = try await stage.get("http://example.com/gone")
        let read = stage.cache.withImmediateResponse(to: CacheRequest(url: Stage.url)) { _ in true }
        #expect(read == true)
        let answers = log.answers
        #expect(
            answers.map(\.request.url) == [
                Stage.url, Stage.url, "http://example.com/gone", Stage.url,
            ]
        )
        #expect(answers.map(\.status) == [200, 200, 404, 200])
        #expect(answers.map(\.source) == [.origin, .fresh, .origin, .fresh])
        #expect(answers.map(\.bodyCount) == [5, 5, 5, 5])
        #expect(answers.map(\.duration) == [.seconds(2), .zero, .seconds(2), .zero])
        await stage.end()
    }

    @Test func otherEventsNameTheirRequest() async throws {
        struct Failure: Error {}
        let log = Log()
        let origin = ScriptedOrigin { request, number in
            switch request.url.split(separator: "/").last ?? "" {
            case "refused": return .whole(fields: ["Cache-Control": "no-store"], body: "x")
            case "failing": throw CacheError(.originFailed, detail: "On purpose")
            default:
                return .whole(
                    fields: ["Cache-Control": "max-age=60, stale-while-revalidate=60"],
                    body: "\(number)"
                )
            }
        }
        let stage = try await Stage(origin) {
            $0.hooks.onEvent = log.append
            $0.hooks.willStore = { proposal in
                if proposal.request.url.hasSuffix("hooked") { throw Failure() }
                return proposal
            }
        }
        let base = "http://example.com/"
        _ = try await stage.get(base + "refused")
        await #expect(throws: CacheError.self) { try await stage.get(base + "failing") }
        // The caller has the error before the event tells of it.
        await stage.cache.waitUntilIdle()
        _ = try await stage.get(base + "hooked")
        _ = try await stage.get(base + "stale")
        stage.clock.advance(seconds: 61)
        _ = try await stage.get(base + "stale")
        #expect(
            log.others == [
                "refused response-no-store \(base)refused", "failed \(base)failing",
                "hook \(base)hooked",
                "refreshed true \(base)stale",
            ]
        )
        await stage.end()
    }
}
