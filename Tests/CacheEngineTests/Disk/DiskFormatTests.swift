import CacheTestSupport
import Testing

@testable import CacheEngine

/// The bytes of docs/disk-format.md, built independently of the encoder.
@Suite struct DiskFormatTests {
    @Test func manifestHasItsDocumentedBytes() {
        let manifest = Manifest(
            storeID: KeyHash(placement: 1, identity: 2),
            seed: KeyHash(placement: 3, identity: 4),
            shardCount: 2,
            segmentBytes: 64 << 10,
            createdSeconds: 5
        )
        let expected = Self.closed(
            Self.bytes("CEM1") + Self.u32(2) + Self.u64(1, 2, 3, 4) + Self.u32(2, 64 << 10)
                + Self.u64(5) + Self.u32(0)
        )
        #expect(manifest.encoded == expected)
        #expect(expected.withUnsafeBytes { Manifest(decoding: $0) } == manifest)
    }

    @Test func segmentHeaderHasItsDocumentedBytes() {
        var header = Self.header
        for isRetired in [false, true] {
            header.isRetired = isRetired
            var page = [UInt8](repeating: 0xEE, count: 4_096)
            page.withUnsafeMutableBytes { header.encode(into: $0) }
            let expected = Self.closed(
                Self.bytes("CES1") + Self.u32(1) + Self.u64(1, 2) + Self.u32(3, 4)
                    + Self.u64(5, 6, 7, 8, 9) + Self.u32(isRetired ? 1 : 0)
            )
            let half = expected + [UInt8](repeating: 0, count: 2_048 - 80)
            #expect(page == half + half)
            for broken in [0, 30, 76, 2_048 + 30] {
                var page = page
                page[broken] ^= 1
                #expect(page.withUnsafeBytes { SegmentHeader(decoding: $0) } == header)
                page[(broken + 2_048) % 4_096] ^= 1
                #expect(page.withUnsafeBytes { SegmentHeader(decoding: $0) } == nil)
            }
        }
    }

    @Test func trailerHasItsDocumentedBytes() {
        let size = 64 << 10
        let trailer = SegmentTrailer(
            generation: 5,
            nonce: 6,
            itemCount: 3,
            footerCRC: 11,
            footerOffset: size - 8_192,
            recordsEnd: 8_192,
            sequenceMin: 12,
            sequenceMax: 14,
            isTorn: true
        )
        var page = [UInt8](repeating: 0xEE, count: 4_096)
        page.withUnsafeMutableBytes { trailer.encode(into: $0) }
        let expected = Self.closed(
            Self.bytes("CET1") + Self.u32(1) + Self.u64(5, 6) + Self.u32(3, 11)
                + Self.u64(UInt64(size - 8_192), 8_192, 12, 14) + Self.u32(UInt32.max, 1, 0)
        )
        #expect(page == expected + [UInt8](repeating: 0, count: 4_096 - 80))
        let decoded = page.withUnsafeBytes {
            SegmentTrailer(decoding: $0, of: Self.header, segmentBytes: size)
        }
        #expect(decoded == trailer)
        var other = Self.header
        other.nonce = 99
        let foreign = page.withUnsafeBytes {
            SegmentTrailer(decoding: $0, of: other, segmentBytes: size)
        }
        #expect(foreign == nil)
    }

    @Test func footerItemHasItsDocumentedBytes() {
        var head = EntryHead(
            hash: KeyHash(placement: 1, identity: 2),
            createdSeconds: 3,
            flags: [.session, .jumbo],
            keyCount: 10,
            tagsCount: 0,
            metadataCount: 0,
            bodyCount: 100
        )
        head.sequence = 107
        let item = FooterItem(head, offset: 8_192)
        var bytes = [UInt8](repeating: 0xEE, count: 32)
        bytes.withUnsafeMutableBytes { item.encode(into: $0, at: 0, sequenceMin: 100) }
        // 174 bytes are three units of 64 bytes; bits: jumbo 4, session 6, raw 3.
        let expected =
            Self.u64(1, 2) + Self.u32(128) + [3, 0, 0, 1 << 4 | 1 << 6 | 1 << 3]
            + Self.u32(UInt32.max, 7)
        #expect(bytes == expected)
        let decoded = bytes.withUnsafeBytes {
            FooterItem(trusted: $0, at: 0, sequenceMin: 100)
        }
        #expect(decoded == item)
    }

    @Test func recordBelongsToOnePlaceInOneLifeOfItsSegment() {
        let entry = VersionedEntry.make(
            1,
            version: 4,
            body: VersionedEntry.body(1, version: 4, bytes: 100),
            createdSeconds: 3,
            hasher: .random()
        )
        let seal = Self.header.seal
        var head = entry.head
        var bytes = entry.withBytes { Array($0) }
        bytes.withUnsafeMutableBytes { head.seal($0, at: 8_192, by: seal) }
        func isValid(at offset: Int, _ seal: SegmentSeal) -> Bool {
            bytes.withUnsafeBytes { CheckedRecord($0, at: offset, sealedBy: seal) != nil }
        }
        var nextLife = Self.header
        nextLife.generation += 1
        #expect(isValid(at: 8_192, seal))
        #expect(!isValid(at: 8_256, seal))
        #expect(!isValid(at: 8_192, nextLife.seal))
        // The seal, and the record's offset; the bytes around the header CRC; key and metadata.
        let sealed =
            Self.u64(1, 2, 3 << 32 | 4, 5, 6) + Self.u64(8_192) + bytes[0..<8] + bytes[12..<64]
        #expect(Array(bytes[8..<12]) == Self.u32(Self.crc(sealed)))
        #expect(Array(bytes[12..<16]) == Self.u32(Self.crc(Array(bytes[64..<164]))))
        #expect(Array(bytes[40..<44]) == Self.u32(Self.crc(Array(bytes[164...]))))
    }

    /// A read allocates the bytes that the head of a compressed body claims.
    @Test(arguments: [0, 1, 1 << 30])
    func compressedBodyLargerThanAnyInALogIsDamage(excess: Int) {
        var head = EntryHead(
            hash: KeyHash(placement: 1, identity: 2),
            createdSeconds: 3,
            keyCount: 0,
            tagsCount: 0,
            metadataCount: 0,
            bodyCount: RecordPlace.recordBytesMax - EntryHead.sizeBytes - recordUnitBytes + excess
        )
        head.codec = .lz4Blocks
        head.storedCount = 64
        let seal = Self.header.seal
        var bytes = [UInt8](repeating: 0, count: EntryHead.sizeBytes + head.storedCount)
        bytes.withUnsafeMutableBytes { head.seal($0, at: 8_192, by: seal) }
        let isValid = bytes.withUnsafeBytes { CheckedRecord($0, at: 8_192, sealedBy: seal) != nil }
        #expect(isValid == (excess == 0))
    }

    /// Each way of the checksum, by the length, at several alignments, in one piece and in two.
    @Test func checksumIsThatOfThePolynomial() {
        var random = SeededRandom(seed: 1)
        let bytes = (0..<13_000).map { _ in UInt8.random(in: 0...255, using: &random) }
        let counts = Array(0...700) + [767, 768, 1_023, 1_025, 4_096, 12_287, 12_288, 12_900]
        for count in counts {
            let start = count % 67
            let expected = Self.crc(Array(bytes[start..<start + count]))
            bytes.withUnsafeBytes { bytes in
                #expect(bytes.crc32c(start..<start + count, from: 0) == expected, "\(count) bytes")
                let middle = start + count / 3
                let first = bytes.crc32c(start..<middle, from: 0)
                #expect(bytes.crc32c(middle..<start + count, from: first) == expected)
            }
        }
    }

    @Test(arguments: [
        "+0001.seg", "-0000.seg", "00001.SEG", "0001.seg", "000001.seg", "0x001.seg",
        "+0000000000000ab.body", "00000000000000AB.body", "0000000000000ab.body",
    ])
    func nameThatNoCacheWritesIsForeign(name: String) {
        #expect(DiskShard.slot(named: name) == nil)
        #expect(BodyFileFormat.fileID(named: name) == nil)
    }

    @Test func fileNamesRoundTrip() {
        #expect(DiskShard.slot(named: "00042.seg") == 42)
        #expect(BodyFileFormat.name(0xAB) == "00000000000000ab.body")
        for number in [1, 0xAB, UInt64.max] {
            #expect(BodyFileFormat.fileID(named: BodyFileFormat.name(number)) == number)
        }
    }

    /// A window is read once, not again for each place behind the end.
    @Test func scanEndsWithTheFile() throws {
        let files = FaultyFileSystem(seed: 1)
        try files.makeDirectory("/d")
        files.replace("/d/f", with: [UInt8](repeating: 0, count: 10_000))
        var scanner = SegmentScanner(
            volume: .replaced(files),
            file: try files.open("/d/f", .existing),
            seal: SegmentSeal(base: 1),
            limit: 1 << 20,
            reach: 512 << 10
        )
        let found = scanner.scan(from: 4_096)
        #expect(found.items.isEmpty && found.end == 4_096 && found.fault == nil)
        #expect(scanner.limit == 10_000)
    }

    @Test func bodyReferenceHasItsDocumentedBytes() {
        let reference = BodyReference(
            fileID: 1,
            rawCount: 300_000,
            fileBytes: 50_032,
            tableOffset: 50_000,
            blockCount: 2,
            tableCRC: 9
        )
        let expected = Self.u64(1, 300_000, 50_032, 50_000) + Self.u32(2, 9)
        #expect(reference.encoded == expected)
        #expect(expected.withUnsafeBytes { BodyReference(decoding: $0) } == reference)
        for position in 10..<36 {
            var broken = expected
            broken[position] ^= 0x80
            #expect(broken.withUnsafeBytes { BodyReference(decoding: $0) } == nil, "\(position)")
        }
    }

    @Test func checksumIsCastagnolisForEveryLength() {
        #expect(Self.bytes("123456789").withUnsafeBytes { $0.crc32c() } == 0xE306_9283)
        var random = SeededRandom(seed: 3)
        let bytes = (0..<40_000).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        for length in Array(0..<80) + [255, 256, 767, 768, 769, 24_575, 24_576, 24_577, 40_000] {
            let part = bytes[..<length]
            let fast = part.withUnsafeBytes { $0.crc32c() }
            #expect(fast == Self.crc(Array(part)), "\(length)")
            let middle = length / 3
            let inTwo = bytes[middle..<length].withUnsafeBytes { rest in
                rest.crc32c(from: bytes[..<middle].withUnsafeBytes { $0.crc32c() })
            }
            #expect(inTwo == fast, "\(length)")
        }
    }

    @Test func recordPlacesRoundTrip() {
        var random = SeededRandom(seed: 4)
        for _ in 0..<10_000 {
            let segment = Int(random.next() % UInt64(RecordPlace.segmentsMax))
            let offset = Int(random.next() % (1 << 22)) * 64
            let largest = UInt64(RecordPlace.recordBytesMax / recordUnitBytes)
            let units = 1 + random.next() % (largest >> (random.next() % 20) | 1)
            let bytes = Int(min(units, largest)) * recordUnitBytes
            var place = RecordPlace(
                segment: segment,
                offset: offset,
                recordBytes: bytes,
                flags: [.session, .raw]
            )
            #expect(place.frequency == 0)
            place.frequency = 9
            #expect(place.segment == segment && place.offset == offset)
            #expect(place.frequency == 3 && place.flags == [.session, .raw] && !place.isQueued)
            #expect(place.recordBytes == bytes)
        }
    }

    @Test func purgesRoundTripAndDamagedOnesAreRefused() {
        let scopes: [RemovalScope] = [
            .everything, .tag("user:42"), .tag(""), .storageClass(.pinned),
            .storedAfter(unixSeconds: -5), .storedBefore(unixSeconds: 1 << 40),
        ]
        for scope in scopes {
            let record = PurgeRecord.removal(scope)
            #expect(record.encoded.withUnsafeBytes { PurgeRecord(decoding: $0) } == record)
        }
        let mark = PurgeRecord.stale(tag: "user:42")
        #expect(mark.encoded == [5] + Array("user:42".utf8))
        #expect(mark.encoded.withUnsafeBytes { PurgeRecord(decoding: $0) } == mark)
        let all = PurgeRecord.everythingStale
        #expect(all.encoded == [6])
        #expect(all.encoded.withUnsafeBytes { PurgeRecord(decoding: $0) } == all)
        for bytes: [UInt8] in [[], [0, 0], [6, 1], [2], [2, 9], [3, 1], [4, 1, 2, 3], [9]] {
            #expect(bytes.withUnsafeBytes { PurgeRecord(decoding: $0) } == nil)
        }
    }

    @Test(arguments: [1, 63, 64, 5_000, 16_385, 262_144, 262_145, 1_000_000])
    func bodiesDecompressToThemselvesAndToNothingElse(size: Int) {
        for version in [3, 4] {
            let body = VersionedEntry.body(size, version: version, bytes: size)
            var stored = [UInt8](repeating: 0, count: BodyCodec.storedCountMax(rawCount: size))
            let (codec, count) = body.withUnsafeBytes { body in
                stored.withUnsafeMutableBytes { BodyCodec.compress(body, into: $0) }
            }
            if version == 4 || size < 64 { #expect(codec == .raw) } else { #expect(codec != .raw) }
            for (lie, isTrue) in [(0, true), (1, false), (-1, false), (262_144, false)]
            where size + lie > 0 {
                var raw = [UInt8](repeating: 0, count: size + lie)
                let isWhole = stored[..<count].withUnsafeBytes { stored in
                    raw.withUnsafeMutableBytes { BodyCodec.decompress(stored, codec, into: $0) }
                }
                #expect(isWhole == isTrue, "\(size) + \(lie)")
                if isTrue { #expect(raw == body) }
            }
        }
    }

    static let header = SegmentHeader(
        storeID: KeyHash(placement: 1, identity: 2),
        shard: 3,
        slot: 4,
        generation: 5,
        nonce: 6,
        oldestGeneration: 7,
        createdSeconds: 8,
        firstSequence: 9
    )

    private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
    private static func u32(_ values: UInt32...) -> [UInt8] {
        values.flatMap { value in (0..<4).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) } }
    }
    private static func u64(_ values: UInt64...) -> [UInt8] {
        values.flatMap { value in (0..<8).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) } }
    }

    /// Appends the checksum of the bytes.
    private static func closed(_ bytes: [UInt8]) -> [UInt8] { bytes + u32(crc(bytes)) }

    /// CRC-32C, one bit at a time.
    private static func crc(_ bytes: [UInt8]) -> UInt32 {
        var crc: UInt32 = ~0
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc >> 1 ^ (crc & 1 == 1 ? 0x82F6_3B78 : 0) }
        }
        return ~crc
    }
}

extension BodyReference {
    fileprivate var encoded: [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Self.sizeBytes)
        bytes.withUnsafeMutableBytes { encode(into: $0) }
        return bytes
    }
}
