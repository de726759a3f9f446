import CacheTestSupport
import Testing

@testable import CacheEngine
@testable import HTTPCaching

/// The bytes of a shared record.
@Suite struct SharedRecordTests {
    private static let log = (0..<16).map { UInt8($0) }

    private static func record(bodyCount: Int, seed: UInt64 = 1, storedSeconds: Int64 = 1_000)
        -> SharedRecord
    {
        var random = SeededRandom(seed: seed)
        let isPlain = Bool.random(using: &random)
        let body = (0..<bodyCount).map { _ in
            isPlain ? UInt8(97) : UInt8.random(in: 0...255, using: &random)
        }
        let facts = StoredFacts(
            status: 200,
            flags: [],
            responseTimeSeconds: 990,
            correctedInitialAgeSeconds: 5,
            freshnessLifetimeSeconds: 60,
            staleWhileRevalidateSeconds: 0,
            staleIfErrorSeconds: 0,
            dateSeconds: 990,
            lastModifiedSeconds: nil
        )
        var fields = FieldSection()
        fields.append("A", "b")
        let key = RequestKey(bytes: [1, 2, 3], hash: KeyHash(placement: 4, identity: 5))
        let blueprint = EntryBlueprint(
            key: key,
            metadata: StoredResponse.metadata(facts: facts, fields: fields, userInfo: nil),
            tags: TagList(["t"]) ?? TagList(),
            createdSeconds: 990
        )
        return SharedRecord(
            StoredEntry(blueprint.makeEntry(body: [ByteChunk(body)], sequence: 7)),
            position: 1 << 41 | 5,
            publishedMilliseconds: 1_000_500,
            storedSeconds: storedSeconds,
            log: log
        )
    }

    @Test func bytesAreReadBack() throws {
        for seed in 0..<40 {
            let count = [0, 1, 100, 5_000, 300_000, 1_000_000][seed % 6]
            let record = Self.record(bodyCount: count, seed: UInt64(seed))
            let bytes = try #require(record.encoded)
            let read = try #require(SharedRecord(bytes))
            #expect(read.position == record.position && read.log == record.log)
            #expect(read.publishedMilliseconds == 1_000_500 && read.storedSeconds == 1_000)
            #expect(read.entry.serialized == record.entry.serialized)
        }
        #expect(Self.record(bodyCount: 2 << 20).encoded == nil)
    }

    /// The bytes of one record of this version: other bytes need another version.
    @Test func versionNamesOneLayout() throws {
        let record = Self.record(bodyCount: 3, seed: 2)
        let bytes = try #require(record.encoded)
        #expect(String(decoding: bytes[..<4], as: UTF8.self) == "CEF2")
        #expect(SharedRecord.version == "2")
        // Without the codec, which depends on the library that compresses.
        #expect(bytes.withUnsafeBytes { $0.crc32c(8..<52, from: 0) } == 0xEAA3_AD08)
        #expect(record.entry.entry.withBytes { $0.crc32c() } == 0xF638_37CC)
    }

    /// R21: whichever byte is flipped, and wherever the bytes end, there is no record.
    @Test func everyDamagedByteIsFound() throws {
        let bytes = try #require(Self.record(bodyCount: 3_900, seed: 3).encoded)
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 1 << (index % 8)
            #expect(SharedRecord(damaged) == nil, "byte \(index)")
            #expect(SharedRecord(Array(bytes[..<index])) == nil, "cut at \(index)")
        }
        #expect(SharedRecord(bytes + [0]) == nil)
    }

    /// The age is the same on machines whose clocks are minutes apart.
    @Test(arguments: [-90, -2, -1, 0, 1, 2, 90, 3_600])
    func ageDoesNotDependOnTheClocks(_ ahead: Int64) throws {
        let record = Self.record(bodyCount: 10)
        // The record is ten seconds old in the store, and was fetched ten seconds before that.
        let now = 1_000 + 10 + ahead
        let entry = try #require(record.entry(nowSeconds: now, fleetMilliseconds: 1_010_900))
        let stored = try #require(StoredResponse(entry))
        let age = stored.facts.ageSeconds(at: now)
        #expect(abs(age - 25) <= 1, "\(age)")
        // It was stored ten seconds before it came into the store.
        let created = Int64(entry.entry.head.createdSeconds)
        #expect(abs(now - created - 20) <= 1, "\(created)")
        #expect(try stored.fields().bytes == #require(StoredResponse(record.entry)).fields().bytes)
    }

    /// The minute for which variants stay begins when they were stored, by whichever clock.
    @Test(arguments: [-7_200, -90, 0, 90, 7_200])
    func timeOfVariantsDoesNotDependOnTheClocks(_ ahead: Int64) throws {
        guard case .selecting(let vary) = Vary.read(FieldSection([("Vary", "Accept")])) else {
            Issue.record("Vary names a field")
            return
        }
        let index = VariantIndex(vary, nonce: 3)
        let key = RequestKey(bytes: [1, 2, 3], hash: KeyHash(placement: 4, identity: 5))
        let roll = VariantRoll(sinceSeconds: 99_990)
        let blueprint = EntryBuilder.blueprint(
            index,
            roll,
            under: key,
            isPinned: false,
            nowSeconds: 99_990
        )
        let record = SharedRecord(
            StoredEntry(blueprint.makeEntry(body: [], sequence: 7)),
            position: 1,
            publishedMilliseconds: 1_000_500,
            storedSeconds: 100_000,
            log: Self.log
        )
        let now = 100_000 + 10 + ahead
        // The roll is 10 s old when it is stored, and 20 s here.
        let entry = try #require(record.entry(nowSeconds: now, fleetMilliseconds: 1_010_900))
        let adopted = try #require(VariantRoll(entry.entry))
        #expect(VariantIndex(entry.entry) == index)
        #expect(!adopted.mayEnd(atSeconds: now + 35))
        #expect(adopted.mayEnd(atSeconds: now + 45))
    }

    @Test(arguments: [
        (Int64.min, Int64(1_000_500)), (1_000, .min), (1_000, .max), (1_000, .min + 1),
    ])
    func impossibleTimesAreAMiss(_ stored: Int64, _ published: Int64) {
        var record = Self.record(bodyCount: 10, storedSeconds: stored)
        record.publishedMilliseconds = published
        #expect(record.entry(nowSeconds: 2_000, fleetMilliseconds: 1_000_600) == nil)
    }

    @Test func variantNamesItsResource() {
        let hasher = KeyHasher.random()
        let bytes: [UInt8] = [1, 0, 0, 0, 0, 65]
        let key = RequestKey(bytes: bytes, hash: bytes.withUnsafeBytes { hasher.hash($0) })
        #expect(key.shared == SharedKey(bytes: bytes, resource: bytes))
        let variant = key.variant([9, 9], nonce: 77, hasher: hasher)
        #expect(variant.shared == SharedKey(bytes: variant.bytes, resource: bytes))
        #expect(
            RequestKey(bytes: Array(variant.bytes.prefix(15)), hash: variant.hash).resource == nil
        )
    }
}
