import CacheTestSupport
import Testing

@testable import CacheEngine

/// The position in a fleet's log is trusted only if every removal before it is on the disk.
@Suite struct FleetPositionTrustTests {
    private func rule(
        _ durability: DiskConfiguration.Durability,
        boot: String?
    ) -> FleetPositionTrust {
        var configuration = DiskConfiguration(directory: "/cache", capacityBytes: 0)
        configuration.durability = durability
        configuration.bootID = boot
        return FleetPositionTrust(configuration)
    }

    /// The writer and the reader of a note.
    private struct Row: Sendable {
        let written: (DiskConfiguration.Durability, boot: String?)
        let read: (DiskConfiguration.Durability, boot: String?)
        let isTrusted: Bool
    }

    private static let rows: [Row] = [
        Row(written: (.none, "a"), read: (.none, "a"), isTrusted: true),
        Row(written: (.none, "a"), read: (.none, "b"), isTrusted: false),
        Row(written: (.onSegmentSeal, "a"), read: (.onSegmentSeal, "a"), isTrusted: true),
        Row(written: (.onSegmentSeal, "a"), read: (.onSegmentSeal, "b"), isTrusted: false),
        Row(written: (.none, "a"), read: (.onRemoval, "b"), isTrusted: false),
        Row(written: (.none, nil), read: (.none, nil), isTrusted: false),
        Row(written: (.none, "a"), read: (.none, nil), isTrusted: false),
        Row(written: (.none, nil), read: (.none, "a"), isTrusted: false),
        Row(written: (.onRemoval, "a"), read: (.onRemoval, "a"), isTrusted: true),
        Row(written: (.onRemoval, "a"), read: (.onRemoval, "b"), isTrusted: true),
        Row(written: (.onRemoval, "a"), read: (.none, "b"), isTrusted: true),
        Row(written: (.onRemoval, nil), read: (.none, nil), isTrusted: true),
    ]

    @Test(arguments: rows.indices)
    func noteOfAnotherBootIsTrustedIfRemovalsAreSynced(_ number: Int) {
        let row = Self.rows[number]
        let note = Array("some\nbytes".utf8)
        let marked = rule(row.written.0, boot: row.written.boot).marked(note)
        let read = rule(row.read.0, boot: row.read.boot).trusted(marked)
        #expect(read == (row.isTrusted ? note : nil))
    }

    /// The removals of a boot stay unsynchronised if a later process of it synchronises its own.
    @Test func changeOfTheDurabilityWithinABootIsNoProof() {
        let first = rule(.none, boot: "a").marked([1])
        let second = rule(.onRemoval, boot: "a")
        #expect(second.trusted(first) == [1])
        let third = rule(.onRemoval, boot: "b")
        #expect(third.trusted(second.marked([2])) == nil)
        // Everything was confirmed since, and the next boot may trust the note.
        #expect(rule(.onRemoval, boot: "c").trusted(third.marked([3])) == [3])
    }

    @Test func noteWithoutAMarkIsNotTrusted() {
        for text in ["", "a", "synced", "ce1 0 0-0 - 0"] {
            #expect(rule(.none, boot: "a").trusted(Array(text.utf8)) == nil)
        }
    }

    // MARK: On the disk

    /// Removes tags in turn and keeps their number; whenever the number is read after a power cut,
    /// the removals up to it hold.
    @Test(arguments: [DiskConfiguration.Durability.none, .onSegmentSeal, .onRemoval])
    func trustedNoteIsNotAheadOfTheRemovals(
        _ durability: DiskConfiguration.Durability
    ) async throws {
        let files = FaultyFileSystem(seed: 1)
        let store = DiskStore(shards: 2, volume: .replaced(files))
        store.configuration.durability = durability
        store.configuration.bootID = "a"
        let tier = try await store.open()
        for number in 0..<20 { _ = tier.enqueue(try store.entry(number, tags: ["t\(number)"])) }
        try await tier.flush()
        var (read, missed) = (0, 0)
        for number in 0..<20 {
            _ = try await tier.removeAll(in: .tag("t\(number)"))
            try await tier.keep(bookmark: [UInt8(number)])
            for (seed, boot) in [(UInt64(1), "b"), (2, "b"), (3, "b"), (0, "a")] {
                let copy = files.copy(afterPowerCut: boot == "b", seed: UInt64(number) * 9 + seed)
                if boot == "a" { copy.endProcess() }
                let other = DiskStore(volume: .replaced(copy))
                other.configuration = store.configuration
                other.configuration.bootID = boot
                let again = try await other.open()
                if let bookmark = await again.bookmark() {
                    read += 1
                    for removed in 0...Int(bookmark[0]) {
                        if try await other.read(removed) != nil { missed += 1 }
                    }
                }
                await other.close()
            }
        }
        #expect(missed == 0)
        #expect(durability == .onRemoval ? read > 24 : read == 20, "\(read)")
        await store.close()
    }
}
