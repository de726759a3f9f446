import CacheEngine
import CacheTestSupport
import Testing

/// Serialized entries are read back whole or as `nil`.
@Suite struct SerializedEntryTests {
    private static func bytes() async throws -> [UInt8] {
        let scene = try await StoreScene()
        #expect(await scene.body() == "v1")
        let entry = try #require(scene.honest.first)
        #expect(await scene.simulation.shutDown())
        return try #require(entry.serialized)
    }

    @Test func everyFlippedBitIsReadAsNil() async throws {
        let bytes = try await Self.bytes()
        #expect(StoredEntry(serialized: bytes)?.serialized == bytes)
        var survivors: [Int] = []
        for bit in 0..<bytes.count * 8 {
            var damaged = bytes
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            if StoredEntry(serialized: damaged) != nil { survivors.append(bit) }
        }
        #expect(survivors.isEmpty, "\(survivors.count) of \(bytes.count * 8)")
    }

    @Test func truncatedOrLongerBytesAreReadAsNil() async throws {
        let bytes = try await Self.bytes()
        for count in 0..<bytes.count {
            #expect(StoredEntry(serialized: [UInt8](bytes[..<count])) == nil)
        }
        #expect(StoredEntry(serialized: bytes + [0]) == nil)
        #expect(StoredEntry(serialized: bytes + bytes) == nil)
    }

    @Test func randomBytesAreReadAsNil() {
        var random = SeededRandom(seed: 7)
        for count in 0..<600 {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(StoredEntry(serialized: bytes) == nil)
        }
    }
}
