import CacheEngine
import CacheTestSupport
import Foundation
import Testing

/// A real process, killed at random moments, again and again on one directory.
@Suite(.serialized) struct CrashTests {
    /// `make crash ROUNDS=…` sets a larger number.
    static let rounds = ProcessInfo.processInfo.environment["CRASH_ROUNDS"].flatMap { Int($0) } ?? 6

    /// There is room for everything, so every acknowledged entry must be present.
    @Test func nothingAcknowledgedIsLostWhenTheProcessIsKilled() async throws {
        var run = try CrashRun(capacityBytes: 4 << 30, hasRoom: true)
        for round in 0..<Self.rounds { try await run.play(round: round) }
        run.clean()
    }

    /// One byte of the log is damaged after each kill; removed entries must stay removed.
    @Test func nothingIsResurrectedWhenABitFlipsBetweenKills() async throws {
        var run = try CrashRun(capacityBytes: 4 << 20, hasRoom: false)
        run.damages = true
        for round in 0..<Self.rounds { try await run.play(round: round) }
        run.clean()
    }

    /// A whole cache: neither a kill nor a damaged byte takes back a response that a caller has
    /// seen.
    @Test(arguments: [false, true])
    func nothingOlderThanWhatACallerSawIsFresh(damages: Bool) async throws {
        var run = try EngineCrashRun(seed: damages ? 2 : 1, damages: damages)
        for round in 0..<Self.rounds { try await run.play(round: round) }
        // Damage may empty one round, and not all of them.
        #expect(run.found > 0)
        run.clean()
    }

    /// Segments are reclaimed all the time: the tier may forget entries, but must not resurrect
    /// them.
    @Test func nothingIsResurrectedWhenTheProcessIsKilledWhileItReclaims() async throws {
        var run = try CrashRun(capacityBytes: 3 << 20, hasRoom: false)
        for round in 0..<Self.rounds { try await run.play(round: round) }
        run.clean()
    }
}

/// A directory, a model of its legal content, and the processes that are killed on it.
struct CrashRun {
    private let directory: String
    private let capacityBytes: Int
    private let hasRoom: Bool
    private var random: SeededRandom
    private var model = DiskModel()
    private var sizes: [Int: Int] = [:]
    private var version = 0
    /// Whether one bit of the log flips after each kill.
    var damages = false

    init(capacityBytes: Int, hasRoom: Bool) throws {
        directory = FileManager.default.temporaryDirectory.path() + "/crash-" + UUID().uuidString
        self.capacityBytes = capacityBytes
        self.hasRoom = hasRoom
        random = SeededRandom(seed: UInt64(capacityBytes))
    }

    func clean() { try? FileManager.default.removeItem(atPath: directory) }

    mutating func play(round: Int) async throws {
        let journal = try runAndKill(afterLines: 20 + Int(random.next() % 600))
        replay(journal)
        if damages { try CrashChild.damage(directory, &random) }
        model.reopenAfterKill()
        try await check(round)
    }

    /// Starts the child, reads at least `lineCount` lines of its journal, kills it, and reads the
    /// rest.
    private mutating func runAndKill(afterLines lineCount: Int) throws -> [Substring] {
        try CrashChild.runAndKill(
            [directory, String(capacityBytes), String(random.next()), String(version)],
            afterLines: lineCount
        )
    }

    private mutating func replay(_ journal: [Substring]) {
        for line in journal {
            let words = line.split(separator: " ")
            let numbers = words.dropFirst().map { Int($0) ?? 0 }
            switch words[0] {
            case "S":
                version = numbers[1]
                sizes[version] = numbers[2]
                model.store(
                    numbers[0],
                    .init(
                        version: version,
                        tags: [String(words[4])],
                        isSession: false,
                        createdSeconds: 1_000_000
                    )
                )
            case "D": model.remove(numbers[0])
            case "R": model.noteDurable(numbers[0])
            case "Q": model.allowPurge(of: String(words[1]))
            case "P": model.purge(.tag(String(words[1])), isAcknowledged: true)
            case "F": model.noteDurable()
            default: continue
            }
        }
        if let last = journal.last?.split(separator: " "), last[0] == "S" {
            model.allowRefusal(of: Int(last[1]) ?? 0)
        }
    }

    private mutating func check(_ round: Int) async throws {
        let tier = try await DiskTier.open(
            CrashPlan.configuration(directory: directory, capacityBytes: capacityBytes)
        )
        var lostBytes = [Int](repeating: 0, count: CrashPlan.shardCount)
        for key in 0..<CrashPlan.keys {
            let storeKey = VersionedEntry.storeKey(key, tier.hasher)
            var found: Int?
            if let stored = try await tier.entry(for: storeKey) {
                let reading = await VersionedEntry.check(stored, is: key)
                guard case .version(let version) = reading else {
                    Issue.record("round \(round): key \(key) gave \(reading)")
                    continue
                }
                found = version
            }
            #expect(
                model.allows(found, for: key),
                "round \(round): key \(key) gave \(found.map(String.init) ?? "nothing")"
            )
            if hasRoom, found == nil {
                #expect(
                    model.mayBeGone(key),
                    "round \(round): key \(key) is lost; \(tier.recovery) \(tier.statistics)"
                )
            }
            if let newest = model.newest(key), newest.version != found, hasRoom {
                let shard = Int(storeKey.hash.placement >> 63)
                lostBytes[shard] += sizes[newest.version] ?? 0
            }
            model.observe(found, for: key)
        }
        for bytes in lostBytes {
            #expect(bytes <= CrashPlan.queueBytesMax, "round \(round): \(bytes) bytes are lost")
        }
        #if ENGINE_CHECKS
            await tier.checkInvariants()
        #endif
        await tier.close()
    }
}
