import CacheTestSupport
import RESP
import Testing

@testable import CacheEngine
@testable import CacheEngineRedis

extension FleetPurge.ID {
    init(_ number: Int) { self.init(high: 7, low: UInt64(number)) }
}

extension FleetPosition {
    init(_ epoch: UInt64, _ number: UInt64) {
        self.init(rawValue: epoch << Self.numberBits | number)
    }
}

extension FleetPurge {
    /// The purge of the tag with that number.
    init(_ number: Int) {
        self.init(id: ID(number), purge: SharedPurge(.tag("t\(number)"), isSoft: false))
    }
}

/// The numbers that the purges were made of.
func numbers(_ purges: [FleetPurge]) -> [UInt64] { purges.map(\.id.low) }

/// A log as its server keeps it, without a server: the model that readers are tested against.
struct ModelLog {
    var incarnation: FleetPurge.ID
    var epoch: UInt64 = 1
    var number: UInt64 = 0
    var entries: [LogEntry] = []
    var last = FleetPosition.zero
    var lastID: FleetPurge.ID?
    private var isOfANewServer = false

    init(incarnation: FleetPurge.ID = FleetPurge.ID(1_000_000)) { self.incarnation = incarnation }

    /// Appends a purge of a machine that has seen that epoch.
    mutating func append(_ purge: FleetPurge, seen: UInt64 = 0) {
        if isOfANewServer || seen > epoch { (epoch, number) = (max(epoch, seen) + 1, 0) }
        isOfANewServer = false
        number += 1
        let position = FleetPosition(epoch, number)
        entries.append(LogEntry(position: position, previous: last, purge: purge))
        last = position
        lastID = purge.id
    }

    mutating func append(_ number: Int, seen: UInt64 = 0) {
        append(FleetPurge(number), seen: seen)
    }

    /// Another server took over; its first append begins an epoch.
    mutating func failOver() { isOfANewServer = true }

    mutating func trim(to count: Int) { entries.removeFirst(max(0, entries.count - count)) }

    var floor: FleetPosition { entries.first?.previous ?? last }

    func reply(to question: LogReader.Question) -> LogReply {
        switch question {
        case .open(let position):
            return .opened(
                LogOpening(
                    incarnation: incarnation,
                    last: last,
                    lastID: lastID,
                    found: entries.first { $0.position == position }?.purge?.id,
                    floor: floor,
                    replicas: 0
                )
            )
        case .read(let position, _):
            let newer = entries.filter { $0.position > position }
            return .read(
                Array(newer.prefix(LogReader.readCountMax)),
                incarnation: incarnation,
                last: last,
                found: entries.first { $0.position == position }?.purge?.id
            )
        case .search: return .found(entries.reversed().prefix(LogReader.searchCountMax).map { $0 })
        }
    }
}

/// A machine that reads a model of the log.
struct ModelMachine {
    static let lag: UInt64 = 10_000_000_000

    var reader: LogReader
    /// The purges that were applied, in their order.
    var applied: [FleetPurge] = []
    /// The numbers of applied purges when everything was marked stale, and why.
    var doubts: [(count: Int, doubt: LogReader.Doubt)] = []
    var kept: Bookmark?
    var restored: [FleetPurge] = []
    var replays = 0

    init(_ bookmark: Bookmark? = nil, revalidates: Bool = false) {
        reader = LogReader(
            bookmark,
            .init(lagNanoseconds: Self.lag, revalidates: revalidates),
            now: 0
        )
    }

    mutating func perform(_ actions: [LogReader.Action]) {
        for action in actions {
            switch action {
            case .apply(let purge): applied.append(purge)
            case .markEverythingStale(let doubt): doubts.append((applied.count, doubt))
            case .restore(let purges): restored += purges
            case .keep(let bookmark): kept = bookmark
            case .replay: replays += 1
            case .caughtUp, .cutOff: break
            }
        }
    }

    /// Asks and reads until the end of the log is reached.
    mutating func catchUp(_ log: ModelLog, now: UInt64 = 0, holdsEntries: Bool = false) {
        for _ in 0..<1_000 {
            let reply = log.reply(to: reader.question)
            let actions = reader.received(reply, now: now, holdsEntries: holdsEntries)
            perform(actions)
            if actions.contains(.caughtUp) { return }
        }
        Issue.record("The reader never reaches the end of the log")
    }

    /// The connection is lost.
    mutating func lose(now: UInt64 = 0) { perform(reader.failed(now: now)) }
}

/// Entries for tests of values.
enum Samples {
    static func entry(tags: [String], body: String = "body") -> StoredEntry {
        var blueprint = EntryBlueprint(
            key: RequestKey(bytes: [2, 2], hash: KeyHash(placement: 1, identity: 2)),
            metadata: [9],
            createdSeconds: 0
        )
        blueprint.tags = TagList(tags) ?? TagList()
        return StoredEntry(blueprint.makeEntry(body: [ByteChunk(body)], sequence: 0))
    }
}
