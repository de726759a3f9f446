package import CacheEngine
import Platform
import Synchronization

/// An HTTP/1.1 server: listening sockets, and one event loop per worker.
package final class ProxyServer: Sendable {
    private struct Running: Sendable {
        var left: Int
        var isUnlinked = false
        var waiters: [UnsafeContinuation<Void, Never>] = []
    }

    /// The address, with the port that the kernel chose for port 0.
    package let address: ListenAddress
    package let counters: [WorkerCounters]
    private let mailboxes: [Mailbox]
    private let log: AccessLogFile?
    private let running: Mutex<Running>

    /// Listens, and starts the workers.
    ///
    /// It answers requests from then on.
    package init(
        _ configuration: ServerConfiguration,
        responder: any Responder,
        clock: any CacheClock = SystemClock(),
        report: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(SystemError) {
        let count = max(1, configuration.workers)
        var isUnix = false
        if case .unix = configuration.address { isUnix = true }
        log = try Self.openLog(configuration.accessLog)
        // The kernel cannot divide a socket in the file system among workers: one worker serves it.
        let workers = isUnix ? 1 : count
        // One socket without sharing comes first: only that fails if another process uses the port.
        let probe = try ListeningSocket(configuration.address, sharing: .none)
        var sockets = [probe]
        if workers > 1 {
            closeDescriptor(probe.descriptor)
            sockets = []
            do throws(SystemError) {
                for _ in 0..<workers {
                    sockets.append(try ListeningSocket(probe.address, sharing: .acrossWorkers))
                }
            } catch {
                for socket in sockets { closeDescriptor(socket.descriptor) }
                throw error
            }
        }
        address = probe.address
        counters = sockets.map { _ in WorkerCounters() }
        var mailboxes: [Mailbox] = []
        for _ in sockets { mailboxes.append(try Mailbox()) }
        self.mailboxes = mailboxes
        running = Mutex(Running(left: sockets.count))
        for (index, socket) in sockets.enumerated() {
            let seed = Worker.Seed(
                listener: socket,
                mailbox: mailboxes[index],
                counters: counters[index],
                configuration: configuration,
                responder: responder,
                log: log,
                clock: clock,
                report: report
            )
            try SystemThread.startDetached { [self] in
                if let worker = try? Worker(seed) {
                    worker.run()
                } else {
                    // Without its worker, connections to this listener would never be accepted.
                    closeDescriptor(seed.listener.descriptor)
                }
                workerEnded()
            }
        }
    }

    /// The port, or 0 for a socket in the file system.
    package var port: UInt16 {
        if case .tcp(_, let port) = address { return port }
        return 0
    }

    /// Stops accepting, and returns when every open request is answered.
    ///
    /// Connections in the kernel's queue are accepted. A kept connection may send one more request
    /// for a short time, and its response says that it is the last.
    package func drain() async {
        unlinkSocket()
        for mailbox in mailboxes { mailbox.post(.drain) }
        await ended()
    }

    /// Ends at once and cuts running responses.
    package func stop() async {
        for mailbox in mailboxes { mailbox.post(.stop) }
        await ended()
    }

    /// Changes limits, times and rules; address, workers, name and log stay.
    package func configure(_ configuration: ServerConfiguration) {
        for mailbox in mailboxes { mailbox.post(.configure(configuration)) }
    }

    /// Opens the access log again.
    package func reopenLog() { mailboxes.first?.post(.reopenLog) }

    private func ended() async {
        await withUnsafeContinuation { continuation in
            let isOver = running.withLock { running in
                if running.left == 0 { return true }
                running.waiters.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
        unlinkSocket()
    }

    /// Runs once: later the path may belong to a successor.
    private func unlinkSocket() {
        guard case .unix(let path) = address else { return }
        let isFirst = running.withLock { running in
            defer { running.isUnlinked = true }
            return !running.isUnlinked
        }
        if isFirst { unlink(path) }
    }

    private func workerEnded() {
        let waiters = running.withLock { running in
            running.left -= 1
            guard running.left == 0 else { return [UnsafeContinuation<Void, Never>]() }
            defer { running.waiters = [] }
            return running.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    private static func openLog(_ path: String?) throws(SystemError) -> AccessLogFile? {
        guard let path else { return nil }
        return try AccessLogFile(path)
    }
}
