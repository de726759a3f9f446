import CacheEngine
import CacheTestSupport
import Platform
import RedisTestSupport
import Testing

@testable import CacheEngineRedis

/// The start of a machine with a disk that has missed many purges.
@Suite(
    .enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"),
    .timeLimit(.minutes(5)),
    .serialized
)
struct FleetStartTests {
    private let folder = TemporaryFolder()
    private let paths = (0..<20).map { "/\($0)" }

    /// A machine that is off, with entries on disk and a position, and purges that it misses; the
    /// last ones concern half of its entries.
    private func missed(
        _ count: Int,
        _ redis: RedisProcess,
        _ origin: VersionedOrigin
    ) async throws -> Machine {
        let here = try await Machine(redis.url, origin)
        let before = try await Machine(redis.url, origin, disk: folder)
        for path in paths { _ = try await before.version(path) }
        try await here.purge(.tag("other"))
        #expect(await eventually { await before.counts.applied >= 1 })
        await before.cache.shutDown()
        for start in stride(from: 0, to: count, by: 200) {
            try await here.purge((start..<start + 200).map { .tag("missed\($0)") })
        }
        for path in paths.prefix(10) {
            origin.change(path)
            try await here.purge(.tag("tag\(path.dropFirst())"))
        }
        return here
    }

    /// The replay takes longer than the start waits, and nothing is served that it would remove.
    @Test func slowReplayLetsEntriesBeConfirmed() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let here = try await missed(4_000, redis, origin)
        let relay = try Relay(to: redis.port)
        relay.slow(Relay.Pace(milliseconds: 350))
        let witness = StallWitness()
        let watching = Task { await witness.watch() }
        defer { watching.cancel() }
        let (count, started) = (origin.count, monotonicNanoseconds())
        let after = try await Machine(relay.url, origin, disk: folder)
        let start = started..<monotonicNanoseconds()
        let waited = start.count / 1_000_000
        #expect(waited >= 1_900)
        let isLinked = await after.counts.isLinked
        #expect(!isLinked, "the replay is to be slower than the start")
        var old = 0
        for path in paths where try await after.version(path) != origin.version(path) { old += 1 }
        // A machine without a processor for a while may have had no reply of the log: then it serves.
        await pause(milliseconds: 20)
        let isStopped = UInt64(start.count) - witness.busyNanoseconds(start) > 500_000_000
        #expect(old == 0 || isStopped)
        #expect(await after.counts.allMarkedStale == 1 || isStopped)
        // Each entry was confirmed or fetched once.
        #expect(origin.count == count + 20 || isStopped)
        relay.slow(nil)
        #expect(await after.isLinked())
        #expect(await eventually { await after.counts.applied >= 4_010 })
        await here.cache.shutDown()
        await after.cache.shutDown()
    }

    /// Many missed purges are applied together, before the first answer.
    @Test func manyMissedPurgesAreAppliedBeforeTheFirstAnswer() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let here = try await missed(4_000, redis, origin)
        let (count, started) = (origin.count, monotonicNanoseconds())
        let after = try await Machine(redis.url, origin, disk: folder)
        let waited = (monotonicNanoseconds() - started) / 1_000_000
        print("4,010 missed purges applied from the start in \(waited) ms")
        for path in paths { #expect(try await after.version(path) == origin.version(path)) }
        // A machine without a processor for two seconds confirms the other entries, too.
        let isLate = waited >= 1_900
        #expect(await after.counts.allMarkedStale == 0 || isLate)
        #expect(origin.count == count + 10 || isLate)
        #expect(await after.isLinked())
        await here.cache.shutDown()
        await after.cache.shutDown()
    }
}
