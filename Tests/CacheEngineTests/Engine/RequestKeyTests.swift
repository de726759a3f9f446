import CacheTestSupport
import Testing

@testable import CacheEngine

/// Keys of requests and of their variants.
@Suite struct RequestKeyTests {
    static let hasher = KeyHasher(seed: KeyHash(placement: 1, identity: 2))

    static func key(url: String, name: String? = nil, partition: String = "") -> [UInt8]? {
        KeyWriter.withKey(url: url, name: name, partition: partition) { bytes, _ in [UInt8](bytes) }
    }

    @Test("X9: parts that concatenate alike make different keys")
    func partsThatConcatenateAlikeDiffer() throws {
        var keys: Set<[UInt8]> = []
        let url = "http://h/"
        var count = 0
        for (partition, name) in [
            ("", nil), ("a", nil), ("ab", nil), ("http://h/", nil), ("", "a"), ("a", "b"),
            ("ab", ""), ("", "ab"), ("", "http://h/"), ("a", "http://h/"), ("", ""),
            ("\u{1}", nil), ("\u{0}\u{0}", "a"), ("", "\u{0}\u{0}a"),
        ] as [(String, String?)] {
            keys.insert(try #require(Self.key(url: url, name: name, partition: partition)))
            count += 1
        }
        #expect(keys.count == count)
    }

    @Test("random partitions and names never collide")
    func randomPartsNeverCollide() throws {
        var random = SeededRandom(seed: 3)
        var seen: [[UInt8]: String] = [:]
        for _ in 0..<20_000 {
            func text() -> String {
                String(
                    (0..<Int.random(in: 0..<4, using: &random)).map { _ in
                        "ab/\u{0}".randomElement(using: &random) ?? "a"
                    }
                )
            }
            let (partition, name, path) = (
                text(), Bool.random(using: &random) ? text() : nil, text()
            )
            let url = "http://h/" + path.filter { $0 != "\u{0}" }
            let key = try #require(Self.key(url: url, name: name, partition: partition))
            let meaning =
                "\(Array(partition.utf8)) \(name.map { Array($0.utf8) } ?? Array(url.utf8)) \(name != nil)"
            #expect(seen.updateValue(meaning, forKey: key) ?? meaning == meaning)
        }
        #expect(seen.count > 1_000)
    }

    @Test("a variant stays in its resource's shard, and its nonce and detail tell it apart")
    func variantsStayInTheirShard() throws {
        let bytes = try #require(Self.key(url: "http://h/"))
        let key = RequestKey(bytes: bytes, hash: bytes.withUnsafeBytes { Self.hasher.hash($0) })
        var hashes: Set<KeyHash> = [key.hash]
        var keys: Set<[UInt8]> = [key.bytes]
        for nonce in [UInt64(0), 1, .max] {
            for detail in [[], [0], [1], [0, 0], [1, 2, 3]] as [[UInt8]] {
                let variant = key.variant(detail, nonce: nonce, hasher: Self.hasher)
                #expect(variant.hash.placement == key.hash.placement)
                hashes.insert(variant.hash)
                keys.insert(variant.bytes)
            }
        }
        #expect(hashes.count == 16)
        #expect(keys.count == 16)
    }

    @Test("X9: two keys with one hash are still two keys")
    func forcedCollisionsAreToldApart() {
        let tier = MemoryTier(MemoryConfiguration(capacityBytes: 4 << 20))
        let hash = KeyHash(placement: 7, identity: 7)
        func blueprint(_ name: String) -> EntryBlueprint {
            EntryBlueprint(
                key: RequestKey(bytes: [UInt8](name.utf8), hash: hash),
                metadata: [],
                createdSeconds: 0
            )
        }
        tier.store(blueprint("first").makeEntry(body: [ByteChunk("1")], sequence: 0))
        func look(_ name: String) -> String? {
            [UInt8](name.utf8).withUnsafeBytes {
                tier.entry(for: hash, key: $0)?.body.text
            }
        }
        #expect(look("first") == "1")
        #expect(look("other") == nil)
        tier.store(blueprint("other").makeEntry(body: [ByteChunk("2")], sequence: 0))
        #expect(look("other") == "2")
        #expect(look("first") == nil, "It made way; it is not mistaken for the other")
        [UInt8]("first".utf8).withUnsafeBytes { _ = tier.remove(hash, key: $0) }
        #expect(look("other") == "2", "Removing the first leaves the other alone")
    }

    @Test("keys beyond what a head can say are refused, not cut")
    func hugeKeysAreRefused() {
        let hash = KeyHash(placement: 0, identity: 0)
        for (count, fits) in [(EntryHead.keyCountMax, true), (EntryHead.keyCountMax + 1, false)] {
            let key = RequestKey(bytes: .init(repeating: 1, count: count), hash: hash)
            let blueprint = EntryBlueprint(key: key, metadata: [], createdSeconds: 0)
            #expect(blueprint.isEncodable(bodyCount: 0) == fits)
        }
    }

    @Test("a body beyond what a head can say is refused before it is copied")
    func hugeBodiesAreRefused() {
        let key = RequestKey(bytes: [1], hash: KeyHash(placement: 0, identity: 0))
        let blueprint = EntryBlueprint(key: key, metadata: [], createdSeconds: 0)
        for (count, fits) in [
            (0, true), (EntryHead.bodyCountMax, true), (EntryHead.bodyCountMax + 1, false),
            (.max, false),
        ] { #expect(blueprint.isEncodable(bodyCount: count) == fits) }
    }
}
