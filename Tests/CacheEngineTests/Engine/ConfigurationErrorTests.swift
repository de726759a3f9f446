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
        Mistake("originLimits.maximumHeadTime is 0.0; give a number above 0") {
            $0.originLimits.maximumHeadTime = .zero
        },
        Mistake("collapsing.maximumOriginRequestsPerKey is 0; give a number above 0") {
            $0.collapsing.maximumOriginRequestsPerKey = 0
        },
        Mistake("collapsing.hitForMissTime is -1.0; give a number from 0 on") {
            $0.collapsing.hitForMissTime = .seconds(-1)
        },
        Mistake("caching.maximumVariants is 0; give a number above 0") {
            $0.caching.maximumVariants = 0
        },
        Mistake("caching.statusLifetimes[404] is -5.0; give a number from 0 on") {
            $0.caching.statusLifetimes = [404: .seconds(-5)]
        },
        Mistake(
            "caching.maximumLifetime is 5.0, and caching.minimumLifetime is 10.0; "
                + "give a maximum from the minimum on"
        ) {
            $0.caching.minimumLifetime = .seconds(10)
            $0.caching.maximumLifetime = .seconds(5)
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

    /// The limits and times of a configuration, each as a change that sets it to a number.
    private static let numbers: [String: @Sendable (inout HTTPCache.Configuration, Int) -> Void] = [
        "caching.heuristic.maximumLifetime": {
            $0.caching.heuristic = .init()
            $0.caching.heuristic?.maximumLifetime = .seconds($1)
        },
        "caching.maximumLifetime": { $0.caching.maximumLifetime = .seconds($1) },
        "caching.maximumTags": { $0.caching.maximumTags = $1 },
        "caching.maximumVariants": { $0.caching.maximumVariants = $1 },
        "caching.minimumLifetime": { $0.caching.minimumLifetime = .seconds($1) },
        "caching.staleIfError": { $0.caching.staleIfError = .seconds($1) },
        "caching.staleOnDisconnect": { $0.caching.staleOnDisconnect = .seconds($1) },
        "caching.staleWhileRevalidate": { $0.caching.staleWhileRevalidate = .seconds($1) },
        "collapsing.hitForMissTime": { $0.collapsing.hitForMissTime = .seconds($1) },
        "collapsing.maximumAge": { $0.collapsing.maximumAge = .seconds($1) },
        "collapsing.maximumAttempts": { $0.collapsing.maximumAttempts = $1 },
        "collapsing.maximumEscapes": { $0.collapsing.maximumEscapes = $1 },
        "collapsing.maximumFlights": { $0.collapsing.maximumFlights = $1 },
        "collapsing.maximumLookUps": { $0.collapsing.maximumLookUps = $1 },
        "collapsing.maximumOriginRequestsPerKey": {
            $0.collapsing.maximumOriginRequestsPerKey = $1
        },
        "collapsing.maximumWait": { $0.collapsing.maximumWait = .seconds($1) },
        "collapsing.maximumWaiters": { $0.collapsing.maximumWaiters = $1 },
        "collapsing.refreshBackOff": { $0.collapsing.refreshBackOff = .seconds($1) },
        "collapsing.sharedErrorTime": { $0.collapsing.sharedErrorTime = .seconds($1) },
        "hooks.maximumWillStoreTime": { $0.hooks.maximumWillStoreTime = .seconds($1) },
        "maximumShutDownTime": { $0.maximumShutDownTime = .seconds($1) },
        "originLimits.maximumFields": { $0.originLimits.maximumFields = $1 },
        "originLimits.maximumHeadSize": { $0.originLimits.maximumHeadSize = .bytes($1) },
        "originLimits.maximumHeadTime": { $0.originLimits.maximumHeadTime = .seconds($1) },
        "originLimits.maximumIdleTime": { $0.originLimits.maximumIdleTime = .seconds($1) },
        "originLimits.windowSize": { $0.originLimits.windowSize = .bytes($1) },
    ]

    /// A number that makes no sense is refused by its name; any other lets responses pass.
    @Test(arguments: numbers.keys.sorted(), [Int.min, -1, 0, 1_000, Int.max])
    func numberIsRefusedOrServes(_ name: String, _ number: Int) async throws {
        var configuration = HTTPCache.Configuration(memory: .megabytes(4))
        let set = try #require(Self.numbers[name])
        set(&configuration, number)
        let origin = ScriptedOrigin { _, _ in
            .whole(fields: ["Cache-Control": "max-age=60"], body: "hello")
        }
        do {
            let cache = try await HTTPCache(configuration: configuration, origin: origin)
            #expect(number >= 0)
            for _ in 0..<2 {
                let response = try await cache.respond(to: .page)
                #expect(try await response.body.collect().text == "hello")
                await cache.waitUntilIdle()
            }
            await cache.shutDown()
        } catch {
            #expect(number != 1_000)
            #expect("\(error)".contains("\(name) is "))
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
