import CProxyShims
import Synchronization

/// Ending a worker without losing a request.
///
///     beginDrain ──▶ queue accepted, new connections held off
///         ──listenerEnds──▶ queue accepted again, listener closed
///         ──idleEnds──▶ idle connections closed
///
/// During a drain every response says `Connection: close`, and running responses are finished.
extension Worker {
    /// The time between two steps of a drain.
    static let drainStepMilliseconds: Int64 = 10
    /// The rounds of accepting in one step, for listeners that cannot hold off new connections.
    private static let acceptRoundsMax = 64

    func beginDrain() {
        guard !isDraining else { return }
        isDraining = true
        let idle = configuration.timeouts.drainIdle
        idleEnds = now + idle.milliseconds
        let isHeldOff = cp_refuse_new(listener, isListeningToTCP ? 1 : 0) == 0
        // A client whose handshake is not finished may believe it is: its last packet is awaited.
        let handshake = min(ServerConfiguration.Timeouts.drainHandshake, idle / 2)
        listenerEnds = isHeldOff && isListeningToTCP ? now + handshake.milliseconds : now
        acceptAll()
        lookAtAll()
        continueDrain()
    }

    func continueDrain() {
        if listener >= 0, now >= listenerEnds {
            acceptAll()
            // A full worker has room for the queued clients once its idle connections have ended.
            if !isListeningToTCP || hasEndedIdle || !hasClientWaiting { stopListening() }
        }
        guard now >= idleEnds, !hasEndedIdle else { return }
        hasEndedIdle = true
        lookAtAll()
    }

    /// Whether a drain has left nothing to do.
    ///
    /// A request at another worker may wait for an exchange of this one, but none does once no
    /// worker has a client.
    var isDrained: Bool {
        guard isDraining, openCount == 0, listener < 0 else { return false }
        if !hasLostClients {
            hasLostClients = true
            clients.leftWorker()
        }
        return upstream.isIdle || clients.areGone || Mutant.endsBesideOtherClients.isOn
    }

    private func acceptAll() {
        for _ in 0..<Self.acceptRoundsMax { guard listener >= 0, accept() else { return } }
    }

    /// Advances every connection: a request may have arrived whose event has not.
    private func lookAtAll() {
        for connection in connections {
            guard let connection, !connection.machine.isClosed else { continue }
            connection.machine.assumeInput()
            advance(connection)
        }
    }
}

/// In a drain: whether any worker of a server still has clients, or may get some.
final class ServedClients: Sendable {
    private let workersLeft: Atomic<Int>

    init(workers: Int) { workersLeft = Atomic(workers) }

    /// Whether no worker has a client, and none can get one.
    var areGone: Bool { workersLeft.load(ordering: .relaxed) == 0 }

    /// The last client of a worker has left; each worker calls it once at most.
    func leftWorker() { workersLeft.subtract(1, ordering: .relaxed) }
}
