import CacheTestSupport
import Testing

@testable import CacheEngine

@Suite struct ConfigurationErrorTests {
    /// A change that makes the configuration invalid, and the error's text.
    struct Mistake: Sendable {
        let text: String
        let make: @Sendable (inout HTTPCache.Configuration) -> Void

        init(
            _ text: String,
            _ make: @escaping @Sendable (inout HTTPCache.Configuration) -> Void
        ) {
            self.text = text
            self.make = make
        }
    }

    static let mistakes: [Mistake] = [
        Mistake("name is empty; give the cache a name") { $0.name = "" },
        Mistake("memory.maximumEntryShare is 1.5; give a number above 0 and at most 1") {
            $0.memory.maximumEntryShare = 1.5
        },
        Mistake("backing.maximumEntryShare is nan; give a number above 0 and at most 1") {
            $0.backing.maximumEntryShare = .nan
        },
        Mistake("memory.maximumPinnedShare is -1.0; give a number from 0 to 1") {
            $0.memory.maximumPinnedShare = -1
        },
        Mistake("caching.heuristic.share is -0.1; give a number from 0 to 1") {
            $0.caching.heuristic?.share = -0.1
        },
        Mistake("caching.heuristic.share is nan; give a number from 0 to 1") {
            $0.caching.heuristic?.share = .nan
        },
        Mistake("caching.refreshAheadShare is 0.0; give a number above 0 and at most 1") {
            $0.caching.refreshAheadShare = 0
        },
        Mistake("caching.refreshAheadShare is nan; give a number above 0 and at most 1") {
            $0.caching.refreshAheadShare = .nan
        },
        Mistake("originLimits.windowSize is 0; give a number above 0") {
            $0.originLimits.windowSize = .zero
        },
        Mistake("collapsing.maximumWaiters is 0; give a number above 0") {
            $0.collapsing.maximumWaiters = 0
        },
        Mistake("storeLimits.maximumOperationTime is 0.0; give a number above 0") {
            $0.backing.storeLimits.maximumOperationTime = .zero
        },
        Mistake("storeLimits.maximumQueuedKeys is -3; give a number above 0") {
            $0.backing.storeLimits.maximumQueuedKeys = -3
        },
        Mistake("storeLimits.maximumBarredScopes is -1; give a number from 0 on") {
            $0.backing.storeLimits.maximumBarredScopes = -1
        },
        Mistake(ignored("durability")) { $0.backing.durability = .onRemoval },
        Mistake(ignored("foreignDirectory")) {
            $0.backing = .custom(InMemoryStore())
            $0.backing.foreignDirectory = .startEmpty
        },
        Mistake(ignored("maximumEntryShare")) {
            $0.backing = .custom(InMemoryStore())
            $0.backing.maximumEntryShare = 0.1
        },
        Mistake(ignoredLimits) { $0.backing.storeLimits.maximumQueuedKeys = 1 },
        Mistake(ignoredLimits) {
            $0.backing = .disk(path: "/cache", capacity: .megabytes(64))
            $0.backing.storeLimits.maximumQueuedKeys = 1
        },
    ]

    private static func ignored(_ name: String) -> String {
        "backing.\(name): without a disk it changes nothing; give a disk, or leave it out"
    }

    private static let ignoredLimits =
        "backing.storeLimits: without a custom store they change nothing; "
        + "give a custom store, or leave them out"

    @Test(arguments: mistakes)
    func errorNamesTheSettingAndItsValue(_ mistake: Mistake) {
        var configuration = HTTPCache.Configuration(memory: .megabytes(4))
        #expect(throws: Never.self) { try configuration.validate() }
        mistake.make(&configuration)
        #expect(throws: CacheError(.configurationInvalid, detail: mistake.text)) {
            try configuration.validate()
        }
    }

    @Test func entryMayTakeAllOfTheLargestCapacity() async throws {
        var configuration = HTTPCache.Configuration(memory: .gigabytes(.max))
        configuration.memory.maximumEntryShare = 1
        configuration.memory.maximumPinnedShare = 1
        let origin = ScriptedOrigin { _, _ in
            .whole(fields: ["Cache-Control": "max-age=60"], body: "hello")
        }
        let cache = try await HTTPCache(configuration: configuration, origin: origin)
        for source in [CacheInfo.Source.origin, .fresh] {
            let response = try await cache.respond(to: .page)
            #expect(response.info.source == source)
            #expect(try await response.body.collect().text == "hello")
            await cache.waitUntilIdle()
        }
        #expect(await cache.statistics.memory.entries == 1)
        await cache.relieveMemoryPressure()
        #expect(await cache.statistics.memory.entries == 0)
        await cache.shutDown()
    }
}
