import Platform
internal import RESP
internal import Synchronization

/// The connections of a client, and the loop that serves them; one thread uses it.
///
/// Each turn reads what has arrived, takes the messages, writes once for each connection, and then
/// resumes the callers whose commands are finished. The walk over all links is cheaper than a system
/// call, because a client has a few connections for each server.
final class LinkTable {
    private static let bufferBytes = 256 << 10

    private let loop: RedisLoop
    private let poller: SocketPoller
    private var links: [ObjectIdentifier: NodeLink] = [:]
    private var linkBySocket: [Int32: NodeLink] = [:]
    private var messages: [LoopMessage] = []
    private var ready: [SocketReadiness] = []
    private var finished: [NodeConnection.Finished] = []
    private var stopSinks: [any ReplySink] = []
    private let buffer = UnsafeMutableRawBufferPointer.allocate(
        byteCount: LinkTable.bufferBytes,
        alignment: 64
    )

    init(_ loop: RedisLoop, _ poller: SocketPoller) {
        self.loop = loop
        self.poller = poller
    }

    deinit { buffer.deallocate() }

    /// Serves until the client is shut down.
    func run() {
        while stopSinks.isEmpty { turn() }
        tearDown()
    }

    private func turn() {
        let timeout = loop.fallAsleep() ? timeoutMilliseconds() : 0
        poller.wait(timeoutMilliseconds: timeout) { ready.append($0) }
        let now = monotonicNanoseconds()
        for event in ready { linkBySocket[event.socket]?.happened(event, buffer, now) }
        ready.removeAll(keepingCapacity: true)
        loop.take(into: &messages)
        for message in messages { accept(message, now) }
        messages.removeAll(keepingCapacity: messages.capacity <= 4_096)
        for link in links.values { link.step(now) }
        deliver()
        for link in links.values where link.isIdle(now) { link.retire(now) }
    }

    private func timeoutMilliseconds() -> Int32 {
        let moment = links.values.reduce(UInt64.max) { min($0, $1.nextMoment) }
        guard moment < .max else { return -1 }
        let now = monotonicNanoseconds()
        let left = moment > now ? (moment - now + 999_999) / 1_000_000 : 0
        return Int32(min(left, 60_000))
    }

    private func accept(_ message: LoopMessage, _ now: UInt64) {
        switch message {
        case .send(let batch, let node): link(of: node, now).enqueue(batch, now)
        case .resolved(let node, let result): link(of: node, now).resolved(result, now)
        case .leave(let node): links[ObjectIdentifier(node)]?.leave(now)
        case .stop(let sink): stopSinks.append(sink)
        }
    }

    private func link(of node: Node, _ now: UInt64) -> NodeLink {
        if let link = links[ObjectIdentifier(node)] { return link }
        let link = NodeLink(node, self, loop.options, loop.credentials, now)
        links[ObjectIdentifier(node)] = link
        return link
    }

    /// Resumes the callers, after their places are free again.
    private func deliver() {
        for link in links.values { link.takeFinished(into: &finished) }
        for one in finished { one.batch.sink.finish(one.outcome) }
        finished.removeAll(keepingCapacity: finished.count <= 4_096)
    }

    private func tearDown() {
        let now = monotonicNanoseconds()
        for message in loop.close() { accept(message, now) }
        for link in links.values { link.shutDown() }
        poller.close()
        deliver()
        for sink in stopSinks { sink.finish(.success([])) }
    }
}

// MARK: - For the links

extension LinkTable {
    func watch(_ socket: NodeSocket, for interest: SocketInterest, _ link: NodeLink) {
        linkBySocket[socket.descriptor] = link
        poller.watch(socket.descriptor, for: interest)
    }

    /// Must be called before the socket is closed.
    func forget(_ socket: NodeSocket) {
        linkBySocket[socket.descriptor] = nil
        poller.watch(socket.descriptor, for: [])
    }

    func retire(_ node: Node) {
        links[ObjectIdentifier(node)] = nil
        loop.retire(node)
    }

    /// Resolves a name on a thread of its own, because the call may block for seconds.
    ///
    /// Returns `false` if there is no thread. A link begins no second one before it has the result.
    func resolve(_ node: Node) -> Bool {
        let thread = try? SystemThread { [loop] in
            let address = node.key.address
            let result = SocketAddress.resolve(address.host, port: Int(address.port))
            loop.post(.resolved(node, result))
        }
        thread?.detach()
        return thread != nil
    }
}
