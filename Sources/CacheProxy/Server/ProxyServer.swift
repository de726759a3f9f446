import CacheEngine
import Platform
import Synchronization

/// An HTTP/1.1 server: listening sockets, and one event loop per worker.
final class ProxyServer: Sendable {
    private struct Running: Sendable {
        var left: Int
        var isUnlinked = false
        var waiters: [UnsafeContinuation<Void, Never>] = []
    }

    /// The address, with the port that the kernel chose for port 0.
    let address: ListenAddress
    let counters: [WorkerCounters]
    private let mailboxes: [Mailbox]
    private let log: AccessLogFile?
    private let running: Mutex<Running>
    private let isEnding = Atomic(false)

    /// Listens, and starts the workers.
    ///
    /// It answers requests from then on.
    convenience init(
        _ configuration: ServerConfiguration,
        responder: any Responder,
        clock: any CacheClock = SystemClock(),
        report: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(SystemError) {
        try self.init(
            configuration,
            responder: responder,
            clock: clock,
            report: report,
            makeMailbox: { () throws(SystemError) -> Mailbox in try Mailbox() }
        )
    }

    /// The same with mailboxes that a test makes.
    init(
        _ configuration: ServerConfiguration,
        responder: any Responder,
        clock: any CacheClock,
        report: @escaping @Sendable (String) -> Void,
        makeMailbox: () throws(SystemError) -> Mailbox
    ) throws(SystemError) {
        log = try configuration.accessLog.map { path throws(SystemError) in
            try AccessLogFile(path, report: report)
        }
        let sockets = try Self.listen(configuration)
        address = sockets[0].address
        counters = sockets.map { _ in WorkerCounters() }
        var mailboxes: [Mailbox] = []
        do throws(SystemError) {
            for _ in sockets { mailboxes.append(try makeMailbox()) }
        } catch {
            // The kernel leaves the file of a socket.
            if case .unix(let path) = sockets[0].address { unlink(path) }
            for socket in sockets { closeDescriptor(socket.descriptor) }
            throw error
        }
        self.mailboxes = mailboxes
        running = Mutex(Running(left: sockets.count))
        let clients = ServedClients(workers: sockets.count)
        var seeds: [Worker.Seed] = []
        for (index, socket) in sockets.enumerated() {
            seeds.append(
                Worker.Seed(
                    listener: socket,
                    mailbox: mailboxes[index],
                    counters: counters[index],
                    configuration: configuration,
                    responder: responder,
                    log: log,
                    clients: clients,
                    clock: clock,
                    report: report
                )
            )
        }
        try start(seeds)
    }

    /// The listening sockets, one for each worker.
    private static func listen(
        _ configuration: ServerConfiguration
    ) throws(SystemError) -> [ListeningSocket] {
        // One socket without sharing comes first: only that fails if another process uses the port.
        let probe = try ListeningSocket(configuration.address, sharing: .none)
        // The kernel cannot divide a socket in the file system among workers: one worker serves it.
        if case .unix = configuration.address { return [probe] }
        guard configuration.workers > 1 else { return [probe] }
        closeDescriptor(probe.descriptor)
        var sockets: [ListeningSocket] = []
        do throws(SystemError) {
            for _ in 0..<configuration.workers {
                sockets.append(try ListeningSocket(probe.address, sharing: .acrossWorkers))
            }
            return sockets
        } catch {
            for socket in sockets { closeDescriptor(socket.descriptor) }
            throw error
        }
    }

    /// Starts a thread for each worker.
    private func start(_ seeds: [Worker.Seed]) throws(SystemError) {
        var started = 0
        do throws(SystemError) {
            // All workers come before the first thread: a server without one of them would leave
            // connections without an answer.
            var workers: [Worker] = []
            for seed in seeds { workers.append(try Worker(seed)) }
            for worker in workers {
                // `nonisolated(unsafe)`: from here on the new thread alone uses it. If it does not
                // start, no code does.
                nonisolated(unsafe) let worker = worker
                try SystemThread.startDetached { [self] in
                    worker.run()
                    workerEnded()
                }
                started += 1
            }
        } catch {
            for mailbox in mailboxes[..<started] { mailbox.post(.stop) }
            for seed in seeds[started...] { closeDescriptor(seed.listener.descriptor) }
            unlinkSocket()
            throw error
        }
    }

    /// The port, or 0 for a socket in the file system.
    var port: UInt16 {
        if case .tcp(_, let port) = address { return port }
        return 0
    }

    /// Whether a drain has begun.
    var isDraining: Bool { isEnding.load(ordering: .relaxed) }

    /// Stops accepting, and returns when every open request is answered.
    ///
    /// Connections in the kernel's queue are accepted. A kept connection may send one more request
    /// for a short time, and its response says that it is the last.
    func drain() async {
        isEnding.store(true, ordering: .relaxed)
        unlinkSocket()
        for mailbox in mailboxes { mailbox.post(.drain) }
        await ended()
    }

    /// Ends at once and cuts running responses.
    func stop() async {
        for mailbox in mailboxes { mailbox.post(.stop) }
        await ended()
    }

    /// Changes limits, times and rules; address, workers, name and log stay.
    func configure(_ configuration: ServerConfiguration) {
        for mailbox in mailboxes { mailbox.post(.configure(configuration)) }
    }

    /// The lines of the access log that were dropped.
    var droppedLogLines: Int { log?.droppedLines ?? 0 }

    /// Opens the access log again, for all workers.
    func reopenLog() { log?.reopen() }

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
}
