import CacheEngine

/// One promise of a store, and the test of it.
///
/// The test returns a description of each violation.
struct StoreCheck: Sendable {
    let name: String
    let body: @Sendable (any CacheStore) async throws -> [String]

    static let all: [StoreCheck] = [
        .init(name: "finds what it stored", body: findsWhatItStored),
        .init(name: "knows nothing else", body: knowsNothingElse),
        .init(name: "replaces", body: replaces),
        .init(name: "removes", body: removes),
        .init(name: "removes by scope", body: removesByScope),
        .init(name: "refusing removes", body: refusingRemoves),
        .init(name: "tells keys apart", body: tellsKeysApart),
        .init(name: "counts", body: counts),
        .init(name: "takes many callers", body: takesManyCallers),
    ]

    static func findsWhatItStored(_ store: any CacheStore) async throws -> [String] {
        var faults: [String] = []
        var found = 0
        for size in [0, 1, 100, 4_095, 4_096, 70_000] {
            let sample = SampleEntry(key: "size \(size)", body: .init(repeating: 7, count: size))
            guard try await store.store(sample.entry) == .stored else { continue }
            guard let entry = try await store.entry(for: sample.key) else { continue }
            found += 1
            if try await SampleEntry(entry) != sample { faults.append("changed \(size) bytes") }
        }
        if found == 0 { faults.append("found none of six entries") }
        return faults
    }

    static func knowsNothingElse(_ store: any CacheStore) async throws -> [String] {
        let sample = SampleEntry(key: "absent", body: [1])
        var faults: [String] = []
        if try await store.entry(for: sample.key) != nil { faults.append("invented an entry") }
        if try await store.remove(sample.key) { faults.append("removed what was not there") }
        if try await store.removeAll(in: .everything) != RemovalCount() {
            faults.append("counted removals in an empty store")
        }
        return faults
    }

    static func replaces(_ store: any CacheStore) async throws -> [String] {
        var faults: [String] = []
        for round in UInt8(0)..<5 {
            let sample = SampleEntry(key: "k", body: .init(repeating: round, count: 10))
            _ = try await store.store(sample.entry)
            guard let entry = try await store.entry(for: sample.key) else { continue }
            if try await SampleEntry(entry) != sample { faults.append("gave an older entry") }
        }
        return faults
    }

    static func removes(_ store: any CacheStore) async throws -> [String] {
        let sample = SampleEntry(key: "k", body: [1, 2, 3])
        var faults: [String] = []
        _ = try await store.store(sample.entry)
        let wasThere = try await store.entry(for: sample.key) != nil
        let isRemoved = try await store.remove(sample.key)
        if wasThere, !isRemoved { faults.append("said there was nothing to remove") }
        if try await store.entry(for: sample.key) != nil { faults.append("kept what was removed") }
        try await store.flush()
        if try await store.entry(for: sample.key) != nil { faults.append("brought it back") }
        return faults
    }

    static func removesByScope(_ store: any CacheStore) async throws -> [String] {
        let samples = [
            SampleEntry(key: "plain", body: [1], createdSeconds: 100),
            SampleEntry(key: "red", body: [2], tags: ["red"], createdSeconds: 200),
            SampleEntry(key: "both", body: [3], tags: ["red", "blue"], createdSeconds: 300),
            SampleEntry(key: "redder", body: [4], tags: ["redder"], createdSeconds: 400),
            SampleEntry(key: "session", body: [5], storageClass: .session, createdSeconds: 500),
            SampleEntry(key: "pinned", body: [6], storageClass: .pinned, createdSeconds: 600),
        ]
        let scopes: [RemovalScope] = [
            .tag("red"), .tag("blue"), .tag(""), .storageClass(.session), .storageClass(.pinned),
            .storageClass(.permanent), .storedAfter(unixSeconds: 300),
            .storedBefore(unixSeconds: 300), .everything,
        ]
        var faults: [String] = []
        for scope in scopes {
            var kept = Set<String>()
            for sample in samples {
                _ = try await store.store(sample.entry)
                if try await store.entry(for: sample.key) != nil { kept.insert(sample.name) }
            }
            let expected = samples.filter {
                kept.contains($0.name) && $0.entry.isCovered(by: scope)
            }
            let count = try await store.removeAll(in: scope)
            if count.entries != expected.count {
                faults.append("\(scope) counted \(count.entries) of \(expected.count)")
            }
            for sample in samples where try await store.entry(for: sample.key) != nil {
                if sample.entry.isCovered(by: scope) {
                    faults.append("\(scope) left \(sample.name)")
                }
                kept.remove(sample.name)
            }
            let missed = kept.subtracting(expected.map(\.name))
            if !missed.isEmpty { faults.append("\(scope) took \(missed.sorted()) too") }
        }
        return faults
    }

    static func refusingRemoves(_ store: any CacheStore) async throws -> [String] {
        let small = SampleEntry(key: "k", body: [1])
        _ = try await store.store(small.entry)
        let large = SampleEntry(key: "k", body: .init(repeating: 9, count: 8 << 20))
        let outcome = try await store.store(large.entry)
        guard let entry = try await store.entry(for: small.key) else { return [] }
        if outcome == .stored {
            return try await SampleEntry(entry) == large ? [] : ["gave the entry of before"]
        }
        return ["refused the replacement and kept the entry of before"]
    }

    static func tellsKeysApart(_ store: any CacheStore) async throws -> [String] {
        let keys = [
            "a", "b", "ab", "a\0", "\0a", "a/b", "A", "ä", "../a", "a b", "a%00",
            String(repeating: "k", count: 65_536), String(repeating: "k", count: 65_535),
        ]
        let samples = keys.enumerated().map { SampleEntry(key: $1, body: [UInt8($0)]) }
        for sample in samples { _ = try await store.store(sample.entry) }
        var faults: [String] = []
        for sample in samples {
            guard let entry = try await store.entry(for: sample.key) else { continue }
            if try await SampleEntry(entry) != sample {
                faults.append("gave another key's entry for \(sample.name.prefix(8))")
            }
        }
        return faults
    }

    static func counts(_ store: any CacheStore) async throws -> [String] {
        var faults: [String] = []
        if await store.usage().entries != 0 { faults.append("counts entries when empty") }
        for number in 0..<20 {
            _ = try await store.store(SampleEntry(key: "k\(number)", body: [1]).entry)
        }
        try await store.flush()
        var found = 0
        for number in 0..<20
        where try await store.entry(for: SampleEntry(key: "k\(number)", body: []).key) != nil {
            found += 1
        }
        let usage = await store.usage()
        if usage.entries != found { faults.append("counts \(usage.entries), holds \(found)") }
        if usage.bytes > usage.capacityBytes { faults.append("holds more than its capacity") }
        _ = try await store.removeAll(in: .everything)
        if await store.usage().entries != 0 { faults.append("counts entries when emptied") }
        return faults
    }

    static func takesManyCallers(_ store: any CacheStore) async throws -> [String] {
        try await withThrowingTaskGroup(of: String?.self) { group in
            for caller in UInt8(0)..<32 {
                group.addTask {
                    for round in UInt8(0)..<8 {
                        let sample = SampleEntry(key: "caller \(caller)", body: [caller, round])
                        _ = try await store.store(sample.entry)
                        guard let entry = try await store.entry(for: sample.key) else { continue }
                        if try await SampleEntry(entry) != sample { return "mixed up callers" }
                    }
                    return nil
                }
            }
            return try await group.reduce(into: []) { if let fault = $1 { $0.append(fault) } }
        }
    }

    /// An entry flushed before a restart is found afterwards or missing, but never wrong.
    static func survivesRestart(
        _ store: any CacheStore,
        _ reopen: StoreConformance.Reopening
    ) async throws -> [String] {
        var samples: [SampleEntry] = []
        for number in 0..<20 {
            samples.append(
                SampleEntry(
                    key: "k\(number)",
                    body: .init(repeating: UInt8(number), count: 1_000),
                    tags: number % 2 == 0 ? ["even"] : []
                )
            )
            _ = try await store.store(samples[number].entry)
        }
        _ = try await store.remove(samples[1].key)
        _ = try await store.removeAll(in: .tag("even"))
        try await store.flush()

        let store = try await reopen(store)
        var faults: [String] = []
        var found = 0
        for (number, sample) in samples.enumerated() {
            guard let entry = try await store.entry(for: sample.key) else { continue }
            found += 1
            if number == 1 || number % 2 == 0 { faults.append("brought back \(sample.name)") }
            if try await SampleEntry(entry) != sample { faults.append("changed \(sample.name)") }
        }
        if found == 0 { faults.append("found nothing after the restart") }
        return faults
    }
}
