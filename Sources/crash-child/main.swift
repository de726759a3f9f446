// Stores, removes and purges until it is killed, and says on its output what it does: the intent
// before each change, the acknowledgement after each durable one. CrashTests reads along, kills it,
// and checks what a new opening finds.
//
//     crash-child DIRECTORY CAPACITY SEED FIRST-VERSION
//
//     S key version bytes tag    about to store
//     D key                      about to remove, without waiting
//     R key                      a removal was acknowledged
//     Q tag                      about to purge
//     P tag                      a purge was acknowledged
//     F                          a flush was acknowledged

import CacheEngine
import CacheTestSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    // One write of a few bytes to a pipe is whole or not at all.
    guard write(1, bytes, bytes.count) == bytes.count else { exit(3) }
}

let arguments = CommandLine.arguments
guard arguments.count == 5, let capacity = Int(arguments[2]), let seed = UInt64(arguments[3]),
    let firstVersion = Int(arguments[4])
else { exit(2) }

let tier = try await DiskTier.open(
    CrashPlan.configuration(directory: arguments[1], capacityBytes: capacity)
)
var random = SeededRandom(seed: seed)
var version = firstVersion
say("O")

// Bounded: a parent that forgets to kill finds the child gone.
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
        // A full queue removes the older entry: from here on that is the key's state.
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
