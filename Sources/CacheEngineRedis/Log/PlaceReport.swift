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
    /// The fields that are no reports, by their names; a later version may have written them.
    var unreadable: [[UInt8]: [UInt8]] = [:]

    init() {}

    /// Reads the reply to HGETALL; `nil` if it has another form.
    init?(_ reply: RESPValue) {
        guard let parts = reply.elements, parts.count.isMultiple(of: 2) else { return nil }
        for index in stride(from: 0, to: parts.count, by: 2) {
            guard let name = parts[index].bytes, let value = parts[index + 1].bytes else {
                return nil
            }
            let text = String(decoding: value, as: UTF8.self)
            if let machine = String(validating: name, as: UTF8.self),
                let report = PlaceReport(machine: machine, text)
            {
                reports.append(report)
            } else {
                unreadable[name] = value
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
        return FleetReach(machines: alive.count + unreadable.count, applied: applied.count)
    }

    /// The machines that have not reported for so long that they are gone.
    func gone(at now: Int64) -> [String] {
        reports.filter { !$0.isAlive(at: now) }.map(\.machine)
    }
}

/// Since when each field that is no report has had its value.
///
/// A machine of a later version reports once a second too, so a field whose value stays belongs to no
/// machine. The time is this machine's own, because the time of such a report is not known.
struct UnreadableReports: Hashable, Sendable {
    private struct Field: Hashable, Sendable {
        let value: [UInt8]
        let sinceNanoseconds: UInt64
    }

    /// Those that were there at the last look.
    private var fields: [[UInt8]: Field] = [:]

    /// Takes what a look has found, and leaves out of it the fields that belong to no machine; returns
    /// their names.
    mutating func sift(_ reports: inout PlaceReports, nowNanoseconds now: UInt64) -> [[UInt8]] {
        var seen: [[UInt8]: Field] = [:]
        for (name, value) in reports.unreadable {
            let known = fields[name].flatMap { $0.value == value ? $0 : nil }
            seen[name] = known ?? Field(value: value, sinceNanoseconds: now)
        }
        fields = seen
        let life = UInt64(PlaceReport.lifeMilliseconds) * 1_000_000
        let gone = seen.filter { now >= $0.value.sinceNanoseconds + life }.map(\.key)
        for name in gone { reports.unreadable[name] = nil }
        return gone
    }
}
