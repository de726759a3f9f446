import RESP

/// One entry of the log's stream.
///
///     XADD … <epoch>-<number>  i <16 bytes>  k h|s  s k|t|a  v <bytes>  p <position before it>
struct LogEntry: Hashable, Sendable {
    let position: FleetPosition
    /// The position of the entry before it when it was appended.
    let previous: FleetPosition
    /// `nil` if a newer version wrote the entry, so that its purge cannot be applied.
    let purge: FleetPurge?

    init(position: FleetPosition, previous: FleetPosition, purge: FleetPurge?) {
        self.position = position
        self.previous = previous
        self.purge = purge
    }

    /// Reads one element of the reply to XREAD or XREVRANGE; `nil` if it is not an entry.
    ///
    /// Unknown fields are left out, so that a later version may add some.
    init?(_ reply: RESPValue) {
        guard let parts = reply.elements, parts.count == 2,
            let position = parts[0].text.flatMap({ FleetPosition($0) }),
            let fields = parts[1].elements, fields.count.isMultiple(of: 2)
        else { return nil }
        var known: [String: [UInt8]] = [:]
        for index in stride(from: 0, to: fields.count, by: 2) {
            guard let name = fields[index].text, let value = fields[index + 1].bytes else {
                return nil
            }
            known[name] = value
        }
        let text = { (name: String) in known[name].map { String(decoding: $0, as: UTF8.self) } }
        self.position = position
        // Without a predecessor the chain is broken, and the reader checks its place.
        previous = text("p").flatMap { FleetPosition($0) } ?? position
        purge = known["i"].flatMap { FleetPurge.ID($0) }.flatMap { id in
            FleetPurge(id: id, kind: text("k"), scope: text("s"), value: known["v"] ?? [])
        }
    }

    /// Reads a list of entries; `nil` if the reply has another form.
    static func list(_ reply: RESPValue) -> [LogEntry]? {
        guard let elements = reply.elements else { return nil }
        let entries = elements.compactMap { LogEntry($0) }
        return entries.count == elements.count ? entries : nil
    }
}
