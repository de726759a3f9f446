import CacheEngine
import CacheTestSupport
import Foundation
import Testing

/// A whole cache that is killed again and again.
///
/// For each key it records the oldest version that may still be served without the origin.
struct EngineCrashRun {
    private let directory: String
    private let damages: Bool
    private var random: SeededRandom
    private var version = 0
    /// The responses that were found after the kills.
    private(set) var found = 0
    /// The newest version that the origin has issued.
    private var issued: [Int: Int] = [:]
    /// The oldest version that may be served; earlier versions were seen replaced, or were removed.
    private var oldest: [Int: Int] = [:]

    private static let capacityBytes = 8 << 20

    init(seed: UInt64, damages: Bool) throws {
        directory = FileManager.default.temporaryDirectory.path() + "/crash-" + UUID().uuidString
        self.damages = damages
        random = SeededRandom(seed: seed)
    }

    func clean() { try? FileManager.default.removeItem(atPath: directory) }

    mutating func play(round: Int) async throws {
        let journal = try CrashChild.runAndKill(
            [
                directory, String(Self.capacityBytes), String(random.next()), String(version),
                "engine",
            ],
            afterLines: 20 + Int(random.next() % 600)
        )
        for line in journal { note(line.split(separator: " ")) }
        if damages { try CrashChild.damage(directory, &random) }
        try await check(round)
    }

    private mutating func note(_ words: [Substring]) {
        let key = words.count > 1 ? Int(words[1]) ?? 0 : 0
        let number = words.count > 2 ? Int(words[2]) ?? 0 : 0
        switch words.first {
        case "I":
            version = number
            issued[key] = number
        case "V": oldest[key] = max(oldest[key] ?? 0, number)
        case "X": oldest[key] = (issued[key] ?? 0) + 1
        case "T":
            for key in 0..<CrashPlan.keys where CrashPlan.tag(of: key) == words[1] {
                oldest[key] = (issued[key] ?? 0) + 1
            }
        default: break
        }
    }

    private mutating func check(_ round: Int) async throws {
        let cache = try await HTTPCache(
            configuration: CrashPlan.cacheConfiguration(directory, Self.capacityBytes),
            origin: ScriptedOrigin(status: 500)
        )
        let policy = CachePolicy(onMiss: .fail)
        for key in 0..<CrashPlan.keys {
            let request = CacheRequest(url: CrashPlan.url(key))
            guard let response = try? await cache.respond(to: request, policy: policy) else {
                continue
            }
            found += 1
            let text = try await response.body.collect().text
            guard let served = CrashPlan.version(in: text, of: key) else {
                Issue.record("round \(round): key \(key) gave no version of its own")
                continue
            }
            let least = oldest[key] ?? 0
            #expect(served >= least, "round \(round): key \(key) gave \(served), not \(least)")
            #expect(served <= issued[key] ?? 0, "round \(round): key \(key) gave \(served)")
            oldest[key] = max(least, served)
        }
        await cache.shutDown()
    }
}
