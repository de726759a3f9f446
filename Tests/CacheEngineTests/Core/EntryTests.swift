import CacheTestSupport
import Testing

@testable import CacheEngine

@Suite struct EntryTests {
    @Test func everyPartOfAnEntryRoundTrips() throws {
        let tags = try #require(TagList(["a", "user:42"]))
        let entry = Self.entry(key: "GET http://h/", body: "hello", tags: tags, metadata: "meta")

        #expect(entry.body.text == "hello")
        #expect(entry.metadata.text == "meta")
        #expect(entry.withKey { String(decoding: $0, as: UTF8.self) } == "GET http://h/")
        #expect(StoredEntry(entry).tags == ["a", "user:42"])
    }

    @Test func headHasItsDocumentedBytes() {
        var head = Self.head
        head.sequence = 0x0102_0304_0506_0708
        head.flags = [.session]
        head.tailCRC = 0x0A0B_0C0D
        var bytes = [UInt8](repeating: 0xEE, count: EntryHead.sizeBytes)
        bytes.withUnsafeMutableBytes { head.encode(into: $0) }
        #expect(
            bytes == [
                0x43, 0x45, 0x52, 0x31, 1, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                8, 7, 6, 5, 4, 3, 2, 1, 0x11, 0, 0, 0, 0, 0, 0, 0,
                0x22, 0, 0, 0, 0, 0, 0, 0, 0x0D, 0x0C, 0x0B, 0x0A, 0x33, 0, 0, 0,
                1, 0, 0, 3, 0, 0, 2, 0, 4, 0, 0, 0, 4, 0, 0, 0,
            ]
        )
        #expect(bytes.withUnsafeBytes { EntryHead(decoding: $0) } == head)
    }

    @Test(arguments: 0..<EntryHead.sizeBytes) func truncatedHeadIsRefused(count: Int) {
        var bytes = [UInt8](repeating: 0, count: EntryHead.sizeBytes)
        bytes.withUnsafeMutableBytes { Self.head.encode(into: $0) }
        #expect(bytes.prefix(count).withUnsafeBytes { EntryHead(decoding: $0) } == nil)
    }

    @Test func serializedEntryRoundTripsAndDamagedOnesAreRefused() throws {
        let entry = Self.entry(key: "k", body: "body", tags: TagList(), metadata: "m")
        var bytes = try #require(StoredEntry(entry).serialized)
        #expect(StoredEntry(serialized: bytes)?.entry.body.text == "body")
        bytes.removeLast()
        #expect(StoredEntry(serialized: bytes) == nil)
    }

    @Test func chunksShareBytesAndSliceThem() {
        let chunk = ByteChunk("0123456789")
        #expect(chunk[2..<6].text == "2345")
        #expect(chunk[2..<6][1..<3].text == "34")
        #expect(chunk[0..<0].isEmpty)
        #expect(chunk == ByteChunk("0123456789"))
        #expect(chunk != ByteChunk("012345678x"))
    }

    @Test func tagsBeyondTheRoomAreRefused() {
        var list = TagList()
        let long = String(repeating: "t", count: 40_000)
        let fits = list.append(long)
        let second = list.append(long)
        #expect(fits && !second)
    }

    static let head = EntryHead(
        hash: KeyHash(placement: 0x11, identity: 0x22),
        createdSeconds: 0x33,
        keyCount: 1,
        tagsCount: 2,
        metadataCount: 3,
        bodyCount: 4
    )

    static func entry(key: String, body: String, tags: TagList, metadata: String) -> Entry {
        let head = EntryHead(
            hash: KeyHash(placement: 1, identity: 2),
            createdSeconds: 3,
            keyCount: key.utf8.count,
            tagsCount: tags.bytes.count,
            metadataCount: metadata.utf8.count,
            bodyCount: body.utf8.count
        )
        return Entry(
            head: head,
            key: Array(key.utf8),
            tags: tags,
            metadata: Array(metadata.utf8)
        ) { $0.copyBytes(from: body.utf8) }
    }
}
