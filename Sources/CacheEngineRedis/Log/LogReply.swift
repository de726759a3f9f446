import RESP

/// The answers of the log's server to a reader.
enum LogReply: Hashable, Sendable {
    case opened(LogOpening)
    /// The entries after the reader's position, the log's state after them, and the purge at the
    /// position; `nil` if the log has no entry there.
    case read(
        [LogEntry],
        incarnation: FleetPurge.ID?,
        last: FleetPosition?,
        found: FleetPurge.ID?
    )
    /// The newest entries, the newest first.
    case found([LogEntry])
}

extension LogReply {
    /// The entries of the log that the answer has.
    var entries: [LogEntry] {
        switch self {
        case .opened: []
        case .read(let entries, _, _, _), .found(let entries): entries
        }
    }
}

/// The state of the log when a reader connects.
struct LogOpening: Hashable, Sendable {
    /// The identity of the log; a log that was deleted and created again has another one.
    var incarnation: FleetPurge.ID
    /// The last entry that was appended, also if it was trimmed since.
    var last: FleetPosition
    var lastID: FleetPurge.ID?
    /// The purge at the reader's position; `nil` if the log has no entry there.
    var found: FleetPurge.ID?
    /// The last position that is no longer in the log; all later ones are.
    var floor: FleetPosition
    /// The replicas that are connected to the server.
    var replicas: Int
}

extension LogOpening {
    /// Reads the reply of the script `open`.
    init?(_ reply: RESPValue) {
        guard let parts = reply.elements, parts.count == 6,
            let incarnation = parts[0].bytes.flatMap({ FleetPurge.ID($0) }),
            let last = parts[1].text.flatMap({ FleetPosition($0) }),
            let floor = parts[4].text.flatMap({ FleetPosition($0) }),
            let replicas = parts[5].integer
        else { return nil }
        self.init(
            incarnation: incarnation,
            last: last,
            lastID: parts[2].bytes.flatMap { FleetPurge.ID($0) },
            found: parts[3].bytes.flatMap { FleetPurge.ID($0) },
            floor: floor,
            replicas: Int(replicas)
        )
    }
}

extension LogReply {
    /// Reads the replies to XREAD, to HMGET of incarnation and last position, and to XRANGE of the
    /// reader's position.
    init?(stream: RESPValue, meta: RESPValue, place: RESPValue) {
        let entries: [LogEntry]
        switch stream {
        case .nilArray, .nilBulk: entries = []
        case .array(let streams):
            guard streams.count == 1, let pair = streams[0].elements, pair.count == 2,
                let list = LogEntry.list(pair[1])
            else { return nil }
            entries = list
        default: return nil
        }
        guard let fields = meta.elements, fields.count == 2 else { return nil }
        self = .read(
            entries,
            incarnation: fields[0].bytes.flatMap { FleetPurge.ID($0) },
            last: fields[1].text.flatMap { FleetPosition($0) },
            found: LogEntry.list(place)?.first?.purge?.id
        )
    }
}
