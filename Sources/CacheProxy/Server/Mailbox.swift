import CProxyShims
import CacheEngine
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What tasks and other threads have to say to a worker.
enum WorkerMessage: Sendable {
    case informational(Exchange, status: Int, fields: HeaderFields)
    case answered(Exchange, CacheResponse)
    case chunk(Exchange, ByteChunk)
    case ended(Exchange)
    case failed(Exchange, any Error)
    /// Whoever reads the request's content has begun, or has room again.
    case wantsContent(Exchange)
    /// Accept nothing more, finish what was begun, and end.
    case drain
    /// End now.
    case stop
    /// Open the log anew.
    case reopenLog
}

/// Messages to a worker, in the order they were posted, and the bell that wakes it.
///
/// What it holds is bounded by its senders: an exchange has at most a window of chunks under way.
final class Mailbox: Sendable {
    private struct State {
        var messages: [WorkerMessage] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    private let bells: (watched: Int32, rung: Int32)

    init() throws(SystemError) {
        var descriptors: (Int32, Int32) = (-1, -1)
        let result = withUnsafeMutablePointer(to: &descriptors) { pair in
            pair.withMemoryRebound(to: Int32.self, capacity: 2) { cp_waker_open($0) }
        }
        guard result == 0 else { throw SystemError("Cannot open a waker") }
        bells = (descriptors.0, descriptors.1)
    }

    deinit {
        closeDescriptor(bells.watched)
        if bells.rung != bells.watched { closeDescriptor(bells.rung) }
    }

    /// Becomes readable when there are messages.
    var descriptor: Int32 { bells.watched }

    func post(_ message: WorkerMessage) {
        let isFirst = state.withLock { state in
            guard !state.isClosed else { return false }
            state.messages.append(message)
            return state.messages.count == 1
        }
        if isFirst { cp_waker_ring(bells.rung) }
    }

    /// Takes everything; `spare` becomes the room for what comes next.
    func take(into spare: inout [WorkerMessage]) {
        cp_waker_drain(bells.watched)
        spare.removeAll(keepingCapacity: spare.capacity <= 4_096)
        state.withLock { swap(&$0.messages, &spare) }
    }

    /// Nobody reads any more.
    func close() {
        let left = state.withLock { state in
            state.isClosed = true
            defer { state.messages = [] }
            return state.messages
        }
        _ = left
    }
}
