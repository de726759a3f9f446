import CacheEngine
import CacheTestSupport
import RESP
import Testing

@testable import CacheEngineRedis

/// Purges, entries and bookmarks as bytes.
@Suite struct FleetPurgeTests {
    static let purges: [SharedPurge] = [false, true].flatMap { isSoft in
        [
            SharedPurge(.key([1, 0, 0, 0, 0, 255, 10, 13]), isSoft: isSoft),
            SharedPurge(.tag("ä tag, with: signs"), isSoft: isSoft),
            SharedPurge(.tag(""), isSoft: isSoft),
            SharedPurge(.everything, isSoft: isSoft),
        ]
    }

    /// An entry as the server would return it.
    private func reply(_ purge: FleetPurge, _ changes: [String: [UInt8]?] = [:]) -> RESPValue {
        var fields: [(String, [UInt8]?)] = [
            ("i", purge.id.bytes), ("k", Array(purge.kind.utf8)), ("s", Array(purge.scope.utf8)),
            ("v", purge.value), ("p", Array("4-1".utf8)), ("later", [1]),
        ]
        for (index, field) in fields.enumerated() {
            if let change = changes[field.0] { fields[index].1 = change }
        }
        let words = fields.flatMap { name, value -> [RESPValue] in
            value.map { [.bulk(Array(name.utf8)), .bulk($0)] } ?? []
        }
        return .array([.bulk(Array("4-2".utf8)), .array(words)])
    }

    @Test(arguments: purges)
    func fieldsAreReadBack(_ purge: SharedPurge) throws {
        let purge = FleetPurge(id: .random(), purge: purge)
        let entry = try #require(LogEntry(reply(purge)))
        #expect(entry.purge == purge)
        #expect(entry.position == FleetPosition("4-2") && entry.previous == FleetPosition("4-1"))
    }

    @Test(arguments: [
        ("k", Array("x".utf8)), ("k", nil), ("s", Array("z".utf8)), ("s", nil), ("i", [1, 2]),
        ("i", nil), ("v", [0xFF]),
    ])
    func fieldsOfAnotherVersionGiveAnEntryWithoutAPurge(_ name: String, _ value: [UInt8]?) throws {
        let purge = FleetPurge(3)
        let entry = try #require(LogEntry(reply(purge, [name: value])))
        #expect(entry.purge == nil)
        #expect(entry.position == FleetPosition("4-2"))
    }

    @Test func replyThatIsNoEntryIsRefused() {
        let id = RESPValue.bulk(Array("4-2".utf8))
        for reply: RESPValue in [
            .nilBulk, .array([]), .array([id]), .array([.integer(1), .array([])]),
            .array([id, .array([id])]), .array([id, .array([id, .integer(1)])]),
            .array([id, .nilArray]),
        ] { #expect(LogEntry(reply) == nil) }
        #expect(LogEntry.list(.array([.nilBulk])) == nil)
        #expect(LogEntry.list(.array([])) == [])
    }

    @Test func bookmarkIsReadBack() throws {
        for id in [nil, FleetPurge.ID.random()] {
            let mark = Bookmark(
                incarnation: .random(),
                position: FleetPosition(9, 77),
                id: id
            )
            #expect(Bookmark(mark.encoded) == mark)
        }
    }

    @Test func damagedBookmarkIsRefused() {
        let mark = Bookmark(incarnation: .random(), position: FleetPosition(9, 77), id: .random())
        let bytes = mark.encoded
        for index in bytes.indices {
            for bit in 0..<8 {
                var damaged = bytes
                damaged[index] ^= 1 << bit
                #expect(Bookmark(damaged) == nil, "byte \(index), bit \(bit)")
            }
            #expect(Bookmark(Array(bytes[..<index])) == nil)
        }
        #expect(Bookmark(bytes + [0x0A]) == nil)
    }

    @Test func memoryIsBoundedAndKnowsWhatItHolds() {
        var memory = PurgeMemory(countMax: 10, bytesMax: 1 << 20)
        for number in 1...3_000 {
            let position = FleetPosition(1, UInt64(number))
            memory.add(
                LogEntry(position: position, previous: .zero, purge: FleetPurge(number % 1_000))
            )
        }
        #expect(memory.all.count == 10)
        #expect(memory.contains(FleetPurge.ID(0)) && memory.contains(FleetPurge.ID(991)))
        #expect(!memory.contains(FleetPurge.ID(990)))
        var small = PurgeMemory(countMax: 100, bytesMax: 1_000)
        for number in 1...50 {
            small.add(LogEntry(position: .zero, previous: .zero, purge: FleetPurge(number)))
        }
        #expect(small.all.count == 7)
    }
}
