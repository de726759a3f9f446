internal import CCurl
internal import CacheEngine
import Platform
internal import Synchronization

/// A command from another thread to the event thread.
enum LoopCommand: Sendable {
    case start(PreparedRequest, UploadPipe?, Exchange)
    case resume(TransferID)
    case resumeUpload(TransferID)
    case cancel(TransferID)
    /// No exchange will follow: the thread ends with the last one.
    case retire
}

/// Passes commands to the event thread through a queue; the first command in it wakes the thread.
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
    static func start(_ configuration: CurlConfiguration) throws(LocalLack) -> EventLoop {
        guard isLibraryReady else {
            throw .ofEventLoop("libcurl could not be initialised")
        }
        let poller: SocketPoller
        do {
            poller = try SocketPoller()
        } catch {
            throw .ofEventLoop("Cannot watch sockets: \(error.reason)")
        }
        let loop = EventLoop(configuration, waker: poller.waker)
        guard let transfers = TransferTable(loop, poller) else {
            poller.close()
            throw .ofEventLoop("libcurl could not create a multi handle")
        }
        guard Self.startThread(transfers) else {
            transfers.tearDown()
            throw .ofEventLoop(
                "The thread of the origin could not be started; raise the limit of threads"
            )
        }
        return loop
    }

    /// Begins the exchange with `request`.
    func start(_ exchange: Exchange, _ request: PreparedRequest) {
        let upload = UploadPipe(
            request.content,
            windowBytesMax: configuration.limits.windowBytesMax,
            onBytes: { [self, id = exchange.id] in resumeUpload(id) }
        )
        guard post(.start(request, upload, exchange)) else {
            upload?.close()
            let error = CacheError(.originFailed, detail: "The CurlOrigin was shut down")
            return exchange.finish(.failure(error))
        }
    }

    /// Queues a command; returns `false` if the event thread has ended.
    @discardableResult
    func post(_ command: LoopCommand) -> Bool {
        inbox.withLock { inbox in
            guard inbox.isOpen else { return false }
            inbox.commands.append(command)
            // Inside the lock, because the poller is closed only after the inbox is closed.
            if inbox.commands.count == 1 { waker.wake() }
            return true
        }
    }

    /// Returns the commands since the last call; called on the event thread.
    func takeCommands() -> [LoopCommand] {
        inbox.withLock { inbox in
            defer { inbox.commands = [] }
            return inbox.commands
        }
    }

    /// Closes the inbox if it is empty; called on the event thread.
    func closeIfIdle() -> Bool {
        inbox.withLock { inbox in
            guard inbox.commands.isEmpty else { return false }
            inbox.isOpen = false
            return true
        }
    }

    private static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
}

extension EventLoop: ExchangeLoop {
    func resume(_ exchange: TransferID) { post(.resume(exchange)) }
    func resumeUpload(_ exchange: TransferID) { post(.resumeUpload(exchange)) }
    func cancel(_ exchange: TransferID) { post(.cancel(exchange)) }
}

// MARK: - The thread

extension EventLoop {
    /// Starts the thread that runs `table`; returns `false` if there is none.
    ///
    /// The thread blocks all signals: a write to a closed TLS connection must fail, not kill the
    /// process.
    private static func startThread(_ table: TransferTable) -> Bool {
        // `nonisolated(unsafe)`: from here on the new thread alone uses the table. If it does not
        // start, the caller alone does.
        nonisolated(unsafe) let table = table
        return SystemThread.startWithoutSignals { table.run() }
    }
}
