import CacheEngine
import RESP

/// The place in the log that one machine reports about once a second.
///
/// The machines of a fleet report into one hash, each under a field of its own:
///
///     HSET ce1:<namespace>:{log}:m  <machine, 32 hex>  "<incarnation, 32 hex> <epoch>-<number> <milliseconds>"
///
/// The time is that of the log's server. A machine that ends removes its field.
struct PlaceReport: Hashable, Sendable {
    /// The time after which a machine without a report counts as gone.
    static let lifeMilliseconds: Int64 = 10_000

    /// The name of the machine's field.
    let machine: String
    let incarnation: FleetPurge.ID
    /// Every entry up to it is applied.
    let position: FleetPosition
    let milliseconds: Int64

    /// The value of the field.
    var text: String {
        "\(Bookmark.hex(incarnation.bytes)) \(position) \(milliseconds)"
    }

    /// Whether the machine has reported lately.
    func isAlive(at now: Int64) -> Bool {
        // A time ahead is that of a server before this one.
        (now - Self.lifeMilliseconds...now + Self.lifeMilliseconds).contains(milliseconds)
    }
}

extension PlaceReport {
    init(machine: String, _ mark: Bookmark, milliseconds: Int64) {
        self.init(
            machine: machine,
            incarnation: mark.incarnation,
            position: mark.position,
            milliseconds: milliseconds
        )
    }

    /// Reads a field that `text` wrote; `nil` for any other.
    init?(machine: String, _ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3,
            let incarnation = Bookmark.bytes(words[0]).flatMap({ FleetPurge.ID($0) }),
            let position = FleetPosition(words[1]),
            let milliseconds = Int64(words[2]), milliseconds >= 0
        else { return nil }
        self.init(
            machine: machine,
            incarnation: incarnation,
            position: position,
            milliseconds: milliseconds
        )
    }
}

/// The reports of all machines.
struct PlaceReports: Hashable, Sendable {
    var reports: [PlaceReport] = []
    /// The number of fields that are no reports; a later version may have written them.
    var unreadableCount = 0

    init() {}

    /// Reads the reply to HGETALL; `nil` if it has another form.
    init?(_ reply: RESPValue) {
        guard let parts = reply.elements, parts.count.isMultiple(of: 2) else { return nil }
        for index in stride(from: 0, to: parts.count, by: 2) {
            guard parts[index].bytes != nil, parts[index + 1].bytes != nil else { return nil }
            if let name = parts[index].text, let text = parts[index + 1].text,
                let report = PlaceReport(machine: name, text)
            {
                reports.append(report)
            } else {
                unreadableCount += 1
            }
        }
    }

    /// The machines that are alive, and those among them that have applied the purge at `position`.
    ///
    /// A machine whose report cannot be read counts as one that has not applied it. A place in
    /// another epoch proves nothing: the log has lost its end in between, and the purge may have been
    /// in it.
    func reach(of position: FleetPosition, in log: FleetPurge.ID, at now: Int64) -> FleetReach {
        let alive = reports.filter { $0.isAlive(at: now) }
        let applied = alive.filter { report in
            let isSameEpoch =
                report.position.epoch == position.epoch || Mutant.trustsLaterEpochs.isOn
            return report.incarnation == log && isSameEpoch && report.position >= position
        }
        return FleetReach(machines: alive.count + unreadableCount, applied: applied.count)
    }

    /// The machines that have not reported for so long that they are gone.
    func gone(at now: Int64) -> [String] {
        reports.filter { !$0.isAlive(at: now) }.map(\.machine)
    }
}
