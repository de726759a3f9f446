internal import CCurl
internal import CacheEngine
internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// What other threads may ask of the event thread.
enum LoopCommand: Sendable {
    case start(PreparedRequest, UploadPipe?, Exchange)
    case resume(TransferID)
    case resumeUpload(TransferID)
    case cancel(TransferID)
    /// No new exchange will come: end with the last one.
    case retire
}

/// The way to the event thread: commands go in through a queue, and a wake-up tells of the first.
final class EventLoop: Sendable {
    private struct Inbox: Sendable {
        var commands: [LoopCommand] = []
        var isOpen = true
    }

    let configuration: CurlConfiguration
    private let waker: SocketWaker
    private let inbox = Mutex(Inbox())

    private init(_ configuration: CurlConfiguration, waker: SocketWaker) {
        self.configuration = configuration
        self.waker = waker
    }

    /// Starts an event thread.
    static func start(_ configuration: CurlConfiguration) throws(CacheError) -> EventLoop {
        guard isLibraryReady else {
            throw CacheError(.originFailed, detail: "libcurl could not be initialised")
        }
        let poller = try SocketPoller()
        let loop = EventLoop(configuration, waker: poller.waker)
        guard let transfers = TransferTable(loop, poller) else {
            poller.close()
            throw CacheError(.originFailed, detail: "libcurl has no room for a multi handle")
        }
        guard Self.startThread(transfers) else {
            transfers.tearDown()
            throw CacheError(.originFailed, detail: "No thread for the event loop")
        }
        return loop
    }

    /// Hands a command over; false once the event thread has ended.
    @discardableResult
    func post(_ command: LoopCommand) -> Bool {
        inbox.withLock { inbox in
            guard inbox.isOpen else { return false }
            inbox.commands.append(command)
            // Inside the lock: the poller is closed only after the inbox was.
            if inbox.commands.count == 1 { waker.wake() }
            return true
        }
    }

    /// The commands since the last call; on the event thread.
    func takeCommands() -> [LoopCommand] {
        inbox.withLock { inbox in
            defer { inbox.commands = [] }
            return inbox.commands
        }
    }

    /// Closes the inbox if nothing is in it; on the event thread.
    func closeIfIdle() -> Bool {
        inbox.withLock { inbox in
            guard inbox.commands.isEmpty else { return false }
            inbox.isOpen = false
            return true
        }
    }

    private static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
}

// MARK: - The thread

extension EventLoop {
    /// Starts the thread that runs `table` from here on.
    private static func startThread(_ table: TransferTable) -> Bool {
        let context = Unmanaged.passRetained(table)
        #if canImport(Darwin)
            var thread: pthread_t?
            let code = pthread_create(&thread, nil, { runTable($0) }, context.toOpaque())
        #else
            var thread = pthread_t()
            let code = pthread_create(&thread, nil, { runTable($0) }, context.toOpaque())
        #endif
        guard code == 0 else {
            context.release()
            return false
        }
        #if canImport(Darwin)
            if let thread { pthread_detach(thread) }
        #else
            pthread_detach(thread)
        #endif
        return true
    }
}

/// The thread's body.
///
/// It receives no signals: a write to a closed TLS connection must fail, not
/// kill the process.
private func runTable(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    var signals = sigset_t()
    sigfillset(&signals)
    pthread_sigmask(SIG_SETMASK, &signals, nil)
    if let context { Unmanaged<TransferTable>.fromOpaque(context).takeRetainedValue().run() }
    return nil
}
