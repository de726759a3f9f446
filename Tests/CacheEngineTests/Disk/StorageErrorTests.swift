import CacheTestSupport
import Synchronization
import Testing

@testable import CacheEngine

/// Every disk failure is counted; reports to the application are rate-limited.
@Suite struct StorageErrorTests {
    @Test func everyFailedWriteIsCountedAndTheFirstIsReported() async throws {
        let files = FaultyFileSystem(seed: 1)
        let told = Mutex(0)
        let clock = TestClock()
        let stage = try await Stage(clock: clock) {
            $0.backing = .disk(path: "/cache", capacity: .megabytes(16))
            $0.backing.fileSystem = .replaced(files)
            $0.backing.flushMilliseconds = 1_000_000
            $0.hooks.onEvent = { event in
                if case .storageFailed = event { told.withLock { $0 += 1 } }
            }
        }
        files.plan.writeError = 1_000
        for number in 0..<10 {
            _ = try await stage.get("http://example.com/\(number)")
            await #expect(throws: CacheError.self) { try await stage.cache.flush() }
        }
        let statistics = await stage.cache.statistics
        let counted = statistics.storageErrors
        #expect(counted >= 10)
        let disk = try #require(stage.cache.services.tiers.backing as? DiskTier)
        #expect(statistics.diskShardsFailed == disk.statistics.shardsFailed)
        #expect(statistics.diskShardsFailed > 0)
        #expect(counted == disk.statistics.writeErrors)
        #expect(told.withLock { $0 } == 1)
        clock.advance(seconds: 3_600)
        await #expect(throws: CacheError.self) { try await stage.cache.flush() }
        #expect(told.withLock { $0 } == 2)
        await stage.end()
    }

    /// A body in a file of its own that the device does not take is refused, and told of once.
    @Test func largeBodiesThatTheDeviceRefusesAreRefusals() async throws {
        let files = FaultyFileSystem(seed: 1)
        let told = Mutex(0)
        let clock = TestClock()
        let body = String(repeating: "x", count: 3 << 20)
        let origin = ScriptedOrigin(fields: ["Cache-Control": "max-age=60"], body: body)
        let stage = try await Stage(origin, clock: clock) {
            $0.memory = .megabytes(1)
            $0.backing = .disk(path: "/cache", capacity: .megabytes(64))
            $0.backing.fileSystem = .replaced(files)
            $0.hooks.onEvent = { event in
                if case .storageFailed = event { told.withLock { $0 += 1 } }
            }
        }
        files.plan.writeError = 1_000
        for number in 0..<10 {
            let answer = try await stage.get("http://example.com/\(number)")
            #expect(answer.body == body)
        }
        let statistics = await stage.cache.statistics
        #expect(statistics.refusals == [StoreRefusalReason("device-failed"): 10])
        #expect(statistics.storageErrors == 10)
        #expect(statistics.stored == 0)
        #expect(told.withLock { $0 } == 1)
        clock.advance(seconds: 61)
        _ = try await stage.get("http://example.com/later")
        #expect(told.withLock { $0 } == 2)
        await stage.end()
    }

    @Test func countsOfTheDiskAreAmongTheMetrics() {
        var disk = DiskStatistics()
        disk.readsRefused = 11
        disk.recordsDamaged = 12
        disk.segmentsReclaimed = 13
        disk.shardsFailed = 14
        var statistics = HTTPCache.Statistics()
        statistics.add(disk)
        let text = statistics.prometheusText()
        for line in [
            "cache_disk_reads_refused_total 11", "cache_disk_records_damaged_total 12",
            "cache_disk_segments_reclaimed_total 13", "cache_disk_shards_failed 14",
        ] { #expect(text.contains("\n\(line)\n"), "\(line)") }
    }

    @Test func damagedManifestIsReported() async throws {
        let files = FaultyFileSystem(seed: 1)
        let told = Mutex<[String]>([])
        for _ in 0..<2 {
            let stage = try await Stage {
                $0.backing = .disk(path: "/cache", capacity: .megabytes(16))
                $0.backing.fileSystem = .replaced(files)
                $0.hooks.onEvent = { event in
                    guard case .storageFailed(let error) = event else { return }
                    told.withLock { $0.append("\(error)") }
                }
            }
            await stage.end()
            files.replace("/cache/MANIFEST", with: [])
        }
        #expect(told.withLock { $0.count } == 1)
        #expect(told.withLock { $0.first?.contains("MANIFEST") } == true)
    }
}
