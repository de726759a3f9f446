package import CacheEngine
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// An HTTP/1.1 server: listening sockets, and one event loop per worker.
package final class ProxyServer: Sendable {
    private struct Running: Sendable {
        var left: Int
        var waiters: [UnsafeContinuation<Void, Never>] = []
    }

    /// Where it listens, with the port that was chosen.
    package let address: ListenAddress
    package let counters: [WorkerCounters]
    private let mailboxes: [Mailbox]
    private let log: AccessLogFile?
    private let running: Mutex<Running>

    /// Listens, and starts the workers.
    ///
    /// Requests are answered from here on.
    package init(
        _ configuration: ServerConfiguration,
        responder: any Responder,
        clock: any CacheClock = SystemClock()
    ) throws(SystemError) {
        let count = max(1, configuration.workers)
        var isUnix = false
        if case .unix = configuration.address { isUnix = true }
        log = try Self.openLog(configuration.accessLog)
        // A socket in the file system cannot be shared out by the kernel: one worker serves it.
        let workers = isUnix ? 1 : count
        // Alone first, so that a port in use by another process is noticed.
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
                clock: clock
            )
            try Self.startThread { [self] in
                if let worker = try? Worker(seed) {
                    worker.run()
                } else {
                    // Nobody would accept what the kernel hands to it.
                    closeDescriptor(seed.listener.descriptor)
                }
                workerEnded()
            }
        }
    }

    /// The port, where there is one.
    package var port: UInt16 {
        if case .tcp(_, let port) = address { return port }
        return 0
    }

    /// Accepts nothing more, and returns when everything begun is answered.
    package func drain() async {
        for mailbox in mailboxes { mailbox.post(.drain) }
        await ended()
    }

    /// Ends at once, in the middle of answers if need be.
    package func stop() async {
        for mailbox in mailboxes { mailbox.post(.stop) }
        await ended()
    }

    /// Opens the access log anew.
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
        if case .unix(let path) = address { unlink(path) }
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

// MARK: - Threads

extension ProxyServer {
    /// What a new thread runs; handed over as one object.
    private final class Job: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    static func startThread(_ run: @escaping @Sendable () -> Void) throws(SystemError) {
        let job = Unmanaged.passRetained(Job(run))
        #if canImport(Glibc)
            var thread = pthread_t()
            let result = pthread_create(
                &thread,
                nil,
                { argument in
                    // Balanced by the retain above; runs once.
                    if let argument {
                        Unmanaged<Job>.fromOpaque(argument).takeRetainedValue().run()
                    }
                    return nil
                },
                job.toOpaque()
            )
            if result == 0 { pthread_detach(thread) }
        #else
            var thread: pthread_t?
            let result = pthread_create(
                &thread,
                nil,
                { argument in
                    Unmanaged<Job>.fromOpaque(argument).takeRetainedValue().run()
                    return nil
                },
                job.toOpaque()
            )
            if result == 0, let thread { pthread_detach(thread) }
        #endif
        guard result == 0 else {
            job.release()
            throw SystemError("Cannot start a thread", code: result)
        }
    }
}
