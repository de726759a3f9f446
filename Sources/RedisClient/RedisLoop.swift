import Platform
internal import RESP
internal import Synchronization

/// A message to the thread of a client.
enum LoopMessage: Sendable {
    case send(Batch, Node)
    /// The look-up of a name has ended.
    case resolved(Node, Result<[SocketAddress], LookUpFailure>)
    /// The server of this connection is not the one that is wanted.
    case leave(Node)
    /// Fail what is open, close every socket, and end.
    case stop(any ReplySink)
}

/// Passes batches to the one thread that owns all sockets of a client.
///
/// Only a message that meets a sleeping thread rings its bell. The bell is rung outside the lock,
/// because the thread that it wakes takes the lock first. The thread closes its descriptor once no
/// bell is being rung.
final class RedisLoop: Sendable {
    private struct Inbox: Sendable {
        var messages: [LoopMessage] = []
        var isAsleep = false
        var isOpen = true
    }

    private struct Nodes: Sendable {
        var known: [NodeKey: Node] = [:]
        /// The counts of those that were forgotten.
        var retiredCounts = RedisCounts()
    }

    /// The connections of one client; a server that redirects to ever new names is stopped here.
    static let nodesMax = 4_096

    let options: RedisOptions
    let credentials: RedisURL.Credentials?
    private let waker: SocketWaker
    /// The threads that ring the bell now; it rises inside the inbox's lock.
    private let ringers = Atomic(0)
    private let inbox = Mutex(Inbox())
    private let nodes = Mutex(Nodes())

    init(
        _ options: RedisOptions,
        _ credentials: RedisURL.Credentials?,
        _ waker: SocketWaker
    ) {
        self.options = options
        self.credentials = credentials
        self.waker = waker
    }

    /// Starts a thread.
    static func start(
        _ options: RedisOptions,
        _ credentials: RedisURL.Credentials?
    ) throws(RedisError) -> RedisLoop {
        let poller: SocketPoller
        do {
            poller = try SocketPoller()
        } catch {
            throw RedisError(.systemFailed, detail: "Cannot watch sockets: \(error.reason)")
        }
        let loop = RedisLoop(options, credentials, poller.waker)
        guard startThread(LinkTable(loop, poller)) else {
            poller.close()
            throw .noThread
        }
        return loop
    }

    /// The thread blocks all signals, so that those of the program reach its own threads.
    private static func startThread(_ table: LinkTable) -> Bool {
        // `nonisolated(unsafe)`: from here on the new thread alone uses the table. If it does not
        // start, no code does.
        nonisolated(unsafe) let links = table
        return SystemThread.startWithoutSignals { links.run() }
    }

    // MARK: - From any thread

    /// Queues a batch, or refuses it at once.
    func send(_ batch: Batch, to key: NodeKey) {
        guard let node = node(for: key) else {
            let detail = "The client already knows \(Self.nodesMax) servers"
            return batch.sink.finish(.failure(RedisError(.overloaded, detail: detail)))
        }
        if let refusal = node.admission.withLock({ $0.admit(batch) }) {
            return batch.sink.finish(.failure(refusal))
        }
        guard post(.send(batch, node)) else {
            node.admission.withLock { $0.release(batch) }
            return batch.sink.finish(.failure(Self.shutDownError))
        }
    }

    /// The server of a connection is not the one that is wanted.
    func leave(_ key: NodeKey) {
        if let node = nodes.withLock({ $0.known[key] }) { post(.leave(node)) }
    }

    static var shutDownError: RedisError {
        RedisError(.shutDown, detail: "The client of Redis was shut down")
    }

    private func node(for key: NodeKey) -> Node? {
        nodes.withLock { nodes in
            if let node = nodes.known[key] { return node }
            guard nodes.known.count < Self.nodesMax else { return nil }
            let node = Node(key, options)
            nodes.known[key] = node
            return node
        }
    }

    /// The connections that are not forgotten.
    var allNodes: [Node] { nodes.withLock { Array($0.known.values) } }

    /// The counts of all connections, also of those that were forgotten.
    var counts: RedisCounts {
        nodes.withLock { nodes in
            nodes.known.values.reduce(nodes.retiredCounts) { sum, node in
                sum + node.admission.withLock { $0.countsNow }
            }
        }
    }

    /// Forgets a connection that nobody uses; a batch that is on its way to it opens it again.
    func retire(_ node: Node) {
        nodes.withLock { nodes in
            if nodes.known[node.key] === node { nodes.known[node.key] = nil }
            let counts = node.admission.withLock { $0.retire() }
            nodes.retiredCounts = nodes.retiredCounts + counts
        }
    }

    /// Adds a message; returns `false` if the thread has ended.
    @discardableResult
    func post(_ message: LoopMessage) -> Bool {
        let (isOpen, rings) = inbox.withLock { inbox in
            guard inbox.isOpen else { return (false, false) }
            inbox.messages.append(message)
            let rings = inbox.isAsleep
            inbox.isAsleep = false
            if rings { ringers.add(1, ordering: .relaxed) }
            return (true, rings)
        }
        if rings {
            waker.wake()
            ringers.subtract(1, ordering: .releasing)
        }
        return isOpen
    }

    // MARK: - On the thread

    /// Lets the next message ring the bell; returns `false` if there is one already.
    func fallAsleep() -> Bool {
        inbox.withLock { inbox in
            inbox.isAsleep = inbox.messages.isEmpty
            return inbox.isAsleep
        }
    }

    /// Takes every message; `spare`, which is empty, becomes the storage of the next ones.
    func take(into spare: inout [LoopMessage]) {
        inbox.withLock { inbox in
            inbox.isAsleep = false
            swap(&inbox.messages, &spare)
        }
    }

    /// Refuses every further message, and returns the last ones; then no thread rings the bell.
    func close() -> [LoopMessage] {
        let last = inbox.withLock { inbox in
            inbox.isOpen = false
            defer { inbox.messages = [] }
            return inbox.messages
        }
        // A ringer makes one system call that does not wait.
        while ringers.load(ordering: .acquiring) > 0 { sched_yield() }
        return last
    }
}
