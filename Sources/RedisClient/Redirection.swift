internal import RESP

/// A cluster's reply that names another server for a command.
enum Redirection: Hashable, Sendable {
    /// The slot belongs to that server from now on.
    case moved(slot: UInt16, to: NodeAddress)
    /// This command alone goes to that server, after ASKING.
    case ask(to: NodeAddress)

    /// Reads a reply such as `MOVED 3999 127.0.0.1:6381`; `nil` if it is no redirection.
    init?(_ reply: RESPValue, from address: NodeAddress) {
        guard case .error(let text) = reply else { return nil }
        let words = text.split(separator: " ")
        guard words.count == 3, let slot = UInt16(words[1]), slot < KeySlot.count,
            let target = NodeAddress(redirection: words[2], askedAt: address)
        else { return nil }
        switch words[0] {
        case "MOVED": self = .moved(slot: slot, to: target)
        case "ASK": self = .ask(to: target)
        default: return nil
        }
    }

    var target: NodeAddress {
        switch self {
        case .moved(_, let target), .ask(let target): target
        }
    }
}
