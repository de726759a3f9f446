// Stores, removes and purges until the process is killed.
//
// It prints the intent before each change and the acknowledgement after each durable one.
// CrashTests reads these lines, kills the process and checks the contents that the next opening
// finds.
//
//     crash-child DIRECTORY CAPACITY SEED FIRST-VERSION [engine]
//
// With `engine` it drives a complete cache (EngineRun), otherwise only the disk tier:
//
//     S key version bytes tag    about to store
//     D key                      about to remove, without waiting
//     R key                      a removal was acknowledged
//     Q tag                      about to purge
//     P tag                      a purge was acknowledged
//     F                          a flush was acknowledged

import CacheEngine
import CacheTestSupport
import Platform

func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    // A write of a few bytes to a pipe is atomic.
    guard write(1, bytes, bytes.count) == bytes.count else { exit(3) }
}

let arguments = CommandLine.arguments
guard arguments.count >= 5, let capacity = Int(arguments[2]), let seed = UInt64(arguments[3]),
    let firstVersion = Int(arguments[4])
else { exit(2) }

if arguments.count > 5 {
    try await EngineRun.play(arguments[1], capacity, seed: seed, firstVersion: firstVersion)
    exit(0)
}

let tier = try await DiskTier.open(
    CrashPlan.configuration(directory: arguments[1], capacityBytes: capacity)
)
var random = SeededRandom(seed: seed)
var version = firstVersion
say("O")

// The number of rounds is bounded, so that the child ends even if its parent does not kill it.
for _ in 0..<1_000_000 {
    let key = Int(random.next() % UInt64(CrashPlan.keys))
    switch random.next() % 100 {
    case 0..<80:
        version += 1
        let bytes = CrashPlan.sizes[Int(random.next() % UInt64(CrashPlan.sizes.count))]
        let tag = CrashPlan.tags[Int(random.next() % UInt64(CrashPlan.tags.count))]
        say("S \(key) \(version) \(bytes) \(tag)")
        guard let tags = TagList([tag]) else { exit(4) }
        let outcome = tier.enqueue(
            VersionedEntry.make(
                key,
                version: version,
                body: VersionedEntry.body(key, version: version, bytes: bytes),
                tags: tags,
                createdSeconds: 1_000_000,
                hasher: tier.hasher
            )
        )
        // A full queue removes the older entry, so the key has no value from now on.
        if outcome != .stored {
            say("D \(key)")
            try await tier.flush()
            say("F")
        }
    case 80..<86:
        say("D \(key)")
        tier.enqueueRemoval(VersionedEntry.storeKey(key, tier.hasher).hash)
    case 86..<94:
        say("D \(key)")
        _ = try await tier.remove(VersionedEntry.storeKey(key, tier.hasher))
        say("R \(key)")
    case 94..<96:
        let tag = CrashPlan.tags[Int(random.next() % UInt64(CrashPlan.tags.count))]
        say("Q \(tag)")
        _ = try await tier.removeAll(in: .tag(tag))
        say("P \(tag)")
    default:
        try await tier.flush()
        say("F")
    }
}
