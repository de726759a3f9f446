import CProxyShims
import CacheEngine
import CurlOrigin
import Platform
import Synchronization

/// A message of a pending response or another thread to a worker.
enum WorkerMessage: Sendable {
    indirect case informational(PendingResponse, status: Int, fields: HeaderFields)
    /// The response is there to be taken.
    case answered(PendingResponse)
    case chunk(PendingResponse, ByteChunk)
    case ended(PendingResponse)
    case failed(PendingResponse, any Error)
    /// The reader of the request's content has begun, or has room again.
    case wantsContent(PendingResponse)
    /// Stop accepting, finish the open requests, and end.
    case drain
    /// End now.
    case stop
    /// Use other limits and rules.
    indirect case configure(ServerConfiguration)
    /// Move the bytes of an exchange with an origin.
    case upstream(UpstreamCommand)
    /// Run a part of a task that prefers this worker.
    case job(UnownedJob)
}

/// The messages to a worker in the order of posting, and the descriptor that wakes it.
///
/// As a task executor it runs the tasks of the worker's requests on the worker's own thread, so that
/// a request does not change threads. The senders bound its size: a pending response has at most a
/// window of chunks in it, and each task at most one job.
final class Mailbox: TaskExecutor {
    private struct State {
        var messages: [WorkerMessage] = []
        /// The worker waits for events, and only the bell wakes it.
        var isAsleep = false
        var isClosed = false
    }

    private let state = Mutex(State())
    private let bells: (watched: Int32, rung: Int32)

    init() throws(SystemError) {
        var descriptors: (Int32, Int32) = (-1, -1)
        let result = withUnsafeMutablePointer(to: &descriptors) { pair in
            pair.withMemoryRebound(to: Int32.self, capacity: 2) { cp_waker_open($0) }
        }
        guard result == 0 else { throw SystemError(.watch) }
        bells = (descriptors.0, descriptors.1)
    }

    deinit {
        closeDescriptor(bells.watched)
        if bells.rung != bells.watched { closeDescriptor(bells.rung) }
    }

    /// Readable after the bell has rung.
    var descriptor: Int32 { bells.watched }

    /// Adds a part of a task; without the worker the shared thread pool runs it.
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if !post(.job(job)) { globalConcurrentExecutor.enqueue(ExecutorJob(job)) }
    }

    /// Adds a message; returns `false`, and drops it, if the worker has ended.
    @discardableResult
    func post(_ message: consuming WorkerMessage) -> Bool {
        // An optional, because a closure can take what is in it, and would copy the message.
        var posted: WorkerMessage? = message
        let (isAccepted, wakes) = state.withLock { state in
            guard !state.isClosed, let message = posted.take() else { return (false, false) }
            state.messages.append(message)
            defer { state.isAsleep = false }
            return (true, state.isAsleep)
        }
        if wakes { cp_waker_ring(bells.rung) }
        return isAccepted
    }

    /// Lets the next message ring the bell; returns `false` if there is one already.
    func fallAsleep() -> Bool {
        state.withLock { state in
            state.isAsleep = state.messages.isEmpty
            return state.isAsleep
        }
    }

    /// Ends the sleep without a message.
    func wakeUp() { state.withLock { $0.isAsleep = false } }

    /// Makes the descriptor unreadable.
    func silenceBell() { cp_waker_drain(bells.watched) }

    /// Takes every message; `spare` becomes the storage of the next ones.
    func take(into spare: inout [WorkerMessage]) {
        spare.removeAll(keepingCapacity: spare.capacity <= 4_096)
        state.withLock { swap(&$0.messages, &spare) }
    }

    /// Drops every message, now and later, and `rest` too: the worker has ended.
    ///
    /// Parts of tasks are not dropped, and exchanges that did not begin fail: a task that waits for
    /// one would never end. A permit is given back.
    func close(_ rest: ArraySlice<WorkerMessage>) {
        let left = state.withLock { state in
            state.isClosed = true
            defer { state.messages = [] }
            return state.messages
        }
        for message in rest + left {
            switch message {
            case .job(let job): globalConcurrentExecutor.enqueue(ExecutorJob(job))
            case .upstream(.start(let call)):
                call.exchange.finish(.failure(UpstreamFailure.shutDown))
            case .upstream(.granted(_, let budget, let host)): budget.give(host)
            default: break
            }
        }
    }
}

extension Mailbox {
    /// The mailbox of the calling thread, if that is an event loop.
    ///
    /// The thread of a loop holds its mailbox from `becomeCurrent` to `resignCurrent`.
    static var current: Mailbox? {
        cp_current().map { Unmanaged<Mailbox>.fromOpaque($0).takeUnretainedValue() }
    }

    func becomeCurrent() { cp_set_current(Unmanaged.passUnretained(self).toOpaque()) }

    func resignCurrent() { cp_set_current(nil) }
}

extension Mailbox: ExchangeLoop {
    func resume(_ exchange: TransferID) { post(.upstream(.resume(exchange))) }
    func resumeUpload(_ exchange: TransferID) { post(.upstream(.resumeUpload(exchange))) }
    func cancel(_ exchange: TransferID) { post(.upstream(.cancel(exchange))) }
}
