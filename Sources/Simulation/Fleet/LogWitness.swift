import CacheEngineRedis
import RESP
import Synchronization

/// The purges that a machine knows, as its questions to the log show them.
///
/// A machine asks for the entries after a position only once it has applied all up to it.
final class LogWitness: Sendable {
    private struct Heard {
        let position: ModelStreamID
        let id: [UInt8]
    }

    private struct State {
        var heard: [Heard] = []
        var readUpTo: ModelStreamID?
    }

    private let process: Int
    private let ledger: FleetLedger
    private let state = Mutex(State())

    init(_ process: Int, _ ledger: FleetLedger) {
        self.process = process
        self.ledger = ledger
    }

    /// The position after which the machine asked for entries last.
    var readUpTo: ModelStreamID? { state.withLock { $0.readUpTo } }

    func asks(_ commands: [[[UInt8]]]) {
        // A read of the log comes after the report of the machine's place.
        guard let words = commands.first(where: { $0[0] != Array("HSET".utf8) }) else { return }
        let name = String(decoding: words[0], as: UTF8.self)
        if name == "XREAD", let last = words.last,
            let position = ModelStreamID(String(decoding: last, as: UTF8.self))
        {
            let known = state.withLock { state in
                defer { state.heard.removeAll { $0.position <= position } }
                state.readUpTo = position
                return state.heard.filter { $0.position <= position }.map(\.id)
            }
            ledger.applied(known, by: process)
        } else if name.hasPrefix("EVAL"), let digest = ModelScript(words)?.digest {
            if digest == Self.append {
                // EVAL script 2 key key incarnation epoch length id …
                let ids = commands.compactMap { $0.count > 8 ? $0[8] : nil }
                return ledger.offered(ids, by: process)
            }
            // The machine finds its place again; it hears or doubts everything that it missed.
            state.withLock { $0.heard = [] }
        }
    }

    func hears(_ reply: RESPValue) {
        let heard = Self.entries(reply)
        state.withLock { $0.heard += heard }
    }

    private static let append = "\(FleetScript.append.digest)"

    /// The entries of a reply to XREAD, XRANGE or XREVRANGE.
    private static func entries(_ reply: RESPValue) -> [Heard] {
        guard let parts = reply.elements else { return [] }
        if parts.count == 2, let text = parts[0].text, let position = ModelStreamID(text),
            let fields = parts[1].elements
        {
            let place = fields.firstIndex { $0.text == "i" }
            guard let place, place + 1 < fields.count, let id = fields[place + 1].bytes else {
                return []
            }
            return [Heard(position: position, id: id)]
        }
        return parts.flatMap { entries($0) }
    }
}
