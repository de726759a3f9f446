import CacheEngine
import CacheLogging
import CacheTestSupport
import InMemoryLogging
import Logging
import Testing

/// Each event makes a line with its level and its request.
@Suite(.timeLimit(.minutes(1))) struct EventLogTests {
    private let lines = InMemoryLogHandler()
    private let request = CacheRequest(url: "http://example.test/a?token=secret")

    private func log(_ level: Logger.Level = .trace) -> EventLog {
        var logger = Logger(label: "cache") { [lines] _ in lines }
        logger.logLevel = level
        return EventLog(logger)
    }

    @Test func anAnswerNamesItsRequestAndSource() async throws {
        var configuration = HTTPCache.Configuration()
        configuration.hooks.onEvent = log().record
        let cache = try await HTTPCache(
            configuration: configuration,
            origin: ScriptedOrigin(body: "hello")
        )
        for _ in 0..<2 { _ = try await cache.respond(to: request).body.collect() }
        await cache.shutDown()

        let answers = lines.entries.filter { $0.message == "Answered" }
        #expect(answers.map { $0.metadata["source"] } == ["origin", "fresh"])
        for answer in answers {
            #expect(answer.level == .debug)
            #expect(answer.metadata["status"] == "200")
            #expect(answer.metadata["method"] == "GET")
            #expect(answer.metadata["url"] == "http://example.test/a")
            #expect(answer.metadata["duration"] != nil)
        }
        #expect(answers.last?.metadata["bytes"] == "5")
    }

    @Test func aFailureOfTheOriginIsAWarning() async throws {
        var configuration = HTTPCache.Configuration()
        configuration.hooks.onEvent = log(.warning).record
        let origin = ScriptedOrigin()
        origin.cutOff()
        let cache = try await HTTPCache(configuration: configuration, origin: origin)
        await #expect(throws: CacheError.self) { try await cache.respond(to: request) }
        await cache.shutDown()

        let line = try #require(lines.entries.first)
        #expect(line.level == .warning && line.message == "The origin failed")
        #expect(line.metadata["url"] == "http://example.test/a")
        #expect(line.metadata["error"]?.description.contains("The network is gone") == true)
    }

    @Test func everyEventHasItsLevelAndItsMetadata() {
        let error = CacheError(.originFailed, detail: "refused")
        let rows: [(CacheEvent, Logger.Level, keys: Set<String>)] = [
            (
                .refused(StoreRefusalReason("no-store"), request: request), .debug,
                ["reason", "method", "url"]
            ),
            (.originFailed(error, request: request), .warning, ["error", "method", "url"]),
            (.escaped("timeout", request: request), .debug, ["reason", "method", "url"]),
            (.refreshed(succeeded: true, request: request), .debug, ["method", "url"]),
            (.refreshed(succeeded: false, request: request), .warning, ["method", "url"]),
            (.hookFailed(error, request: request), .warning, ["error", "method", "url"]),
            (.storageFailed(error), .error, ["error"]),
            (.fleetFailed(error), .error, ["error"]),
            (.fleetLinked, .notice, []),
        ]
        for (event, level, keys) in rows {
            lines.clear()
            log().record(event)
            #expect(lines.entries.map(\.level) == [level], "\(event)")
            #expect(Set(lines.entries.first.map { $0.metadata.keys } ?? [:].keys) == keys)
        }
    }

    @Test func theQueryIsNotLogged() {
        log().record(.refreshed(succeeded: true, request: request))
        #expect(lines.entries.count == 1)
        #expect(!"\(lines.entries)".contains("secret"))
    }

    /// A combining mark joins the sign before it, which is then no question mark.
    @Test(arguments: [
        ("http://me:secret@a.test/b@c?secret", "http://a.test/b@c"),
        ("http://me:sec@ret@a.test", "http://a.test"),
        ("http://a.test/b?\u{301}secret", "http://a.test/b"),
        ("http://a.test#\u{301}secret@", "http://a.test"), ("/b@c", "/b@c"),
    ])
    func noSecretOfAURLIsLogged(url: String, logged: String) {
        log().record(.refreshed(succeeded: true, request: CacheRequest(url: url)))
        #expect(lines.entries.first?.metadata["url"] == .string(logged))
    }
}
