import CacheTestSupport
import Synchronization
import Testing

@testable import CacheEngine

/// Numbers that no shard reaches, with valid checksums around them.
@Suite struct ForgedNumberTests {
    /// Where the number is.
    enum Place: CaseIterable, Sendable {
        case generation, oldestGeneration, firstSequence, trailer, record, list

        /// Whether an opening reads it only if the last process was killed.
        var isScanned: Bool { self == .record || self == .list }
    }

    static let numbers: [UInt64] = [
        1 << 50, LogNumber.sequenceMax, LogNumber.sequenceMax + 1, UInt64.max - 1, UInt64.max,
    ]

    @Test(arguments: Place.allCases, numbers)
    func shardStoresOnBesideAForgedNumber(place: Place, number: UInt64) async throws {
        let (store, files) = try await Self.store(isKilled: place.isScanned)
        let path = try #require(files.paths.first { $0.hasSuffix("00000.seg") })
        var bytes = try #require(files.bytes(of: path))
        let isForged = bytes.withUnsafeMutableBytes { Self.forge(place, number, in: $0) }
        try #require(isForged)
        files.replace(path, with: bytes)
        let tier = try await store.open()
        let next = tier.shards[0].state.withLock { $0.nextSequence }
        try #require(next <= LogNumber.sequenceMax + 1)
        #expect(try await store.version(2) == nil, "it was removed")
        #expect(tier.enqueue(try store.entry(8)) == .stored)
        try await tier.flush()
        #expect(try await store.version(8) == 0)
        // After numbers near the bound, an opening begins again with small ones.
        let second = try await store.reopen()
        #expect(try await store.version(2) == nil, "it was removed")
        #expect(second.enqueue(try store.entry(9)) == .stored)
        let third = try await store.reopen()
        #expect(try await store.version(9) == 0)
        let last = third.shards[0].state.withLock { $0.nextSequence }
        #expect(last < 1 << 60, "far from the bound")
        await store.close()
    }

    /// Other records of the segment are read although its trailer is forged.
    @Test func forgedTrailerCostsNoEntry() async throws {
        let (store, files) = try await Self.store(isKilled: false)
        let path = try #require(files.paths.first { $0.hasSuffix("00000.seg") })
        var bytes = try #require(files.bytes(of: path))
        let isForged = bytes.withUnsafeMutableBytes { Self.forge(.trailer, UInt64.max - 1, in: $0) }
        try #require(isForged)
        files.replace(path, with: bytes)
        let tier = try await store.open()
        #expect(tier.recovery.torn == 1)
        for number in [1, 3] { #expect(try await store.version(number) == 0) }
        #expect(try await store.version(2) == nil)
        await store.close()
    }

    /// Where a forged footer may say that a record is; the first one, in the first slot, is the place
    /// that stands for no record.
    static let places: [(offset: Int, bytes: Int)] = [
        (0, 0), (0, 64), (64, 128), (SegmentHeader.sizeBytes, 0), (60 << 10, 64), (1 << 30, 64),
    ]

    /// The record counts as unreadable: its key is lost, and its older record does not come back.
    @Test(arguments: places.indices)
    func forgedPlaceCostsItsEntryAlone(number: Int) async throws {
        let (store, files) = try await Self.store(isKilled: false)
        let second = try await store.open()
        #expect(second.enqueue(try store.entry(3, version: 1)) == .stored)
        let hash = try store.storeKey(3).hash
        await store.close()
        let path = try #require(files.paths.first { $0.hasSuffix("00000.seg") })
        var bytes = try #require(files.bytes(of: path))
        let isForged = bytes.withUnsafeMutableBytes { segment in
            Self.forgeFooter(Self.places[number], ofLast: hash, in: segment)
        }
        try #require(isForged)
        files.replace(path, with: bytes)
        let tier = try await store.open()
        #expect(tier.recovery.damaged == 1)
        #expect(try await store.version(1) == 0)
        for number in [2, 3] { #expect(try await store.version(number) == nil, "\(number)") }
        #expect(try await !tier.remove(store.storeKey(3)))
        #expect(tier.enqueue(try store.entry(4)) == .stored)
        _ = try await store.reopen()
        for number in [2, 3] { #expect(try await store.version(number) == nil, "\(number)") }
        for number in [1, 4] { #expect(try await store.version(number) == 0, "\(number)") }
        await store.close()
    }

    /// A store of the keys 1 and 3, from which 2 was removed.
    private static func store(isKilled: Bool) async throws -> (DiskStore, FaultyFileSystem) {
        let files = FaultyFileSystem(seed: 1)
        let store = DiskStore(volume: .replaced(files))
        store.configuration.flushMilliseconds = 1_000_000
        let tier = try await store.open()
        for number in 1...3 { _ = tier.enqueue(try store.entry(number)) }
        try await tier.flush()
        _ = try await tier.remove(store.storeKey(2))
        let killed = files.copy(afterPowerCut: false)
        await store.close()
        guard isKilled else { return (store, files) }
        store.volume = .replaced(killed)
        return (store, killed)
    }

    /// Writes the number into a segment and closes the checksums again.
    private static func forge(
        _ place: Place,
        _ number: UInt64,
        in segment: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard var header = SegmentHeader(decoding: UnsafeRawBufferPointer(segment)) else {
            return false
        }
        switch place {
        case .generation: header.generation = number
        case .oldestGeneration: header.oldestGeneration = number
        case .firstSequence: header.firstSequence = number
        case .trailer: return forgeTrailer(of: header, number, in: segment)
        case .record: return forgeRecord(of: header, number, in: segment)
        case .list: return forgeList(of: header, number, in: segment)
        }
        header.encode(into: segment)
        return true
    }

    /// The trailer of a segment, and the page that has it.
    private static func trailer(
        of header: SegmentHeader,
        in segment: UnsafeMutableRawBufferPointer
    ) -> (SegmentTrailer, UnsafeMutableRawBufferPointer)? {
        let start = segment.count - SegmentTrailer.sizeBytes
        let page = UnsafeMutableRawBufferPointer(rebasing: segment[start...])
        let trailer = SegmentTrailer(
            decoding: UnsafeRawBufferPointer(page),
            of: header,
            segmentBytes: segment.count
        )
        return trailer.map { ($0, page) }
    }

    private static func forgeTrailer(
        of header: SegmentHeader,
        _ number: UInt64,
        in segment: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard let (known, page) = trailer(of: header, in: segment) else { return false }
        var trailer = known
        trailer.sequenceMin = number - (trailer.sequenceMax - trailer.sequenceMin)
        trailer.sequenceMax = number
        trailer.encode(into: page)
        return true
    }

    /// Lets the last item of that key name another place, in a footer of one page.
    private static func forgeFooter(
        _ place: (offset: Int, bytes: Int),
        ofLast hash: KeyHash,
        in segment: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard let header = SegmentHeader(decoding: UnsafeRawBufferPointer(segment)) else {
            return false
        }
        guard let (known, page) = trailer(of: header, in: segment) else { return false }
        var trailer = known
        let end = trailer.footerOffset + trailer.itemCount * FooterItem.sizeBytes
        let footer = UnsafeMutableRawBufferPointer(rebasing: segment[trailer.footerOffset..<end])
        let position = (0..<trailer.itemCount).map { $0 * FooterItem.sizeBytes }.last { position in
            UnsafeRawBufferPointer(footer).littleEndian(at: position + 8, as: UInt64.self)
                == hash.identity
        }
        guard let position else { return false }
        let size = UnsafeRawBufferPointer(footer).littleEndian(at: position + 20, as: UInt32.self)
        let units = UInt32(place.bytes / recordUnitBytes)
        footer.setLittleEndian(UInt32(place.offset / recordUnitBytes), at: position + 16)
        footer.setLittleEndian(size & ~0xFF_FFFF | units, at: position + 20)
        trailer.footerCRC = UnsafeRawBufferPointer(footer).crc32c()
        trailer.encode(into: page)
        return true
    }

    /// Gives the first record that number.
    private static func forgeRecord(
        of header: SegmentHeader,
        _ number: UInt64,
        in segment: UnsafeMutableRawBufferPointer
    ) -> Bool {
        let start = SegmentHeader.sizeBytes
        let record = UnsafeMutableRawBufferPointer(rebasing: segment[start...])
        guard var head = EntryHead(decoding: UnsafeRawBufferPointer(record)) else { return false }
        head.sequence = number
        head.seal(record, at: start, by: header.seal)
        return true
    }

    /// Gives the newest record of the first list that number, and damages the first record, which
    /// only the list then identifies.
    private static func forgeList(
        of header: SegmentHeader,
        _ number: UInt64,
        in segment: UnsafeMutableRawBufferPointer
    ) -> Bool {
        var start = SegmentHeader.sizeBytes
        segment[start + EntryHead.sizeBytes] ^= 1
        while start < segment.count {
            let record = UnsafeMutableRawBufferPointer(rebasing: segment[start...])
            guard var head = EntryHead(decoding: UnsafeRawBufferPointer(record)) else {
                return false
            }
            guard head.flags.contains(.pad) else {
                start += head.recordBytes
                continue
            }
            let bodyEnd = EntryHead.sizeBytes + head.storedCount
            let body = UnsafeRawBufferPointer(rebasing: record[EntryHead.sizeBytes..<bodyEnd])
            let sequences = BatchList(trusted: body)?.items.map(\.sequence) ?? []
            guard let oldest = sequences.min(), let newest = sequences.max() else { return false }
            record.setLittleEndian(number - (newest - oldest), at: EntryHead.sizeBytes + 8)
            head.seal(record, at: start, by: header.seal)
            return true
        }
        return false
    }
}
