import Platform

/// The PROXY header in front of a connection's first request, and the peers that send one.
extension Worker {
    /// Uses held bytes as the PROXY header; returns whether bytes of a request follow it.
    func useHeader(_ connection: Connection, _ pending: PendingInput) -> Bool {
        guard !pending.bytes.isEmpty else { return false }
        switch pending.bytes.withUnsafeBytes(ProxyHeaderParser.parse) {
        case .needsMore:
            change(connection, connection.machine.inputHeld())
            return false
        case .refused(let fault):
            refuseHeader(connection, fault)
            return false
        case .complete(let header, let count):
            connection.take(header)
            connection.machine.announced()
            pending.bytes.removeFirst(count)
            if pending.bytes.isEmpty {
                connection.pending = nil
                connection.machine.heldInputUsed()
                return false
            }
            change(connection, connection.machine.inputHeld())
            return true
        }
    }

    /// Closes a connection whose PROXY header is missing, invalid or late.
    func refuseHeader(_ connection: Connection, _ fault: ProxyHeaderFault) {
        counters.add(1, to: .headerFaults)
        if let skipped = refusedHeaders.admit(now: now) {
            let line = ProxyHeaderReport.closed(Self.name(of: connection.peer), fault)
            report(line + ReportLimit.note(skipped: skipped))
        }
        close(connection)
    }

    /// Closes a connection that no network of the configuration contains.
    func refusePeer(_ socket: Int32, _ peer: IPAddress?) {
        counters.add(1, to: .peersRefused)
        if let skipped = refusedPeers.admit(now: now) {
            let line = ProxyHeaderReport.refused(Self.name(of: peer))
            report(line + ReportLimit.note(skipped: skipped))
        }
        closeDescriptor(socket)
    }

    private static func name(of peer: IPAddress?) -> String { peer?.text ?? "a unix socket" }
}

/// The lines about connections that end at their PROXY header.
enum ProxyHeaderReport {
    static func refused(_ peer: String) -> String {
        "Refused a connection from \(peer): --proxy-protocol-from does not name it; "
            + "add its network, or let it connect to the proxy in front"
    }

    static func closed(_ peer: String, _ fault: ProxyHeaderFault) -> String {
        "Closed a connection from \(peer): \(fault.text); "
            + "let the proxy in front send one, as HAProxy does with send-proxy-v2-ssl"
    }
}
