import CacheTestSupport
import Testing

@testable import CacheEngine

@Suite struct KeyHasherTests {
    let hasher = KeyHasher(seed: KeyHash(placement: 0x1234_5678, identity: 0x9ABC_DEF0))

    @Test func everyFlippedBitChangesHalfTheHash() {
        for length in [1, 3, 4, 7, 8, 15, 16, 17, 46, 100] {
            var key = [UInt8](repeating: 0x61, count: length)
            let before = hash(key)
            var changedBits = 0
            for bit in 0..<length * 8 {
                key[bit / 8] ^= 1 << (bit % 8)
                let after = hash(key)
                changedBits += (before.identity ^ after.identity).nonzeroBitCount
                changedBits += (before.placement ^ after.placement).nonzeroBitCount
                key[bit / 8] ^= 1 << (bit % 8)
            }
            let share = Double(changedBits) / Double(length * 8 * 128)
            #expect(share > 0.42 && share < 0.58, "length \(length): \(share)")
        }
    }

    @Test func sequentialKeysDoNotCollideAndSpreadEvenly() {
        var seen: Set<KeyHash> = []
        var shards = [Int](repeating: 0, count: 16)
        for number in 0..<100_000 {
            let hash = hash(Array("http://example.com/item/\(number)".utf8))
            seen.insert(hash)
            shards[Int(hash.placement >> 60)] += 1
        }
        #expect(seen.count == 100_000)
        #expect(shards.allSatisfy { (5_800...6_700).contains($0) }, "\(shards)")
    }

    @Test func lengthAndSeedAreBothPartOfTheHash() {
        #expect(hash([0]) != hash([0, 0]))
        #expect(hash([]) != hash([0]))
        let other = KeyHasher(seed: KeyHash(placement: 1, identity: 2))
        #expect([1, 2, 3].withUnsafeBytes(other.hash) != [1, 2, 3].withUnsafeBytes(hasher.hash))
    }

    @Test func variantStaysInTheShardOfItsResource() {
        let base = hash(Array("http://example.com/".utf8))
        let variant = Array("gzip".utf8).withUnsafeBytes { hasher.hash($0, within: base) }
        #expect(variant.placement == base.placement)
        #expect(variant.identity != base.identity)
    }

    func hash(_ key: [UInt8]) -> KeyHash { key.withUnsafeBytes(hasher.hash) }
}
