import Platform
internal import Synchronization

/// An HTTP/1.1 server on the loopback interface that follows a test's script.
///
/// Each connection has a thread, so a script is sequential code: it can write any bytes, wait at a
/// gate or close in the middle of a response. The system chooses the port. The server ends with
/// `stop` or with its last reference.
public final class LoopbackServer: Sendable {
    /// The server's reaction to one request.
    ///
    /// When the script returns, the connection stays open unless the script has closed it.
    public typealias Script = @Sendable (LoopbackRequest, LoopbackConnection) -> Void

    /// The port on which the server listens.
    public let port: UInt16
    private let state: LoopbackServerState
    private let listener: Int32

    /// Creates a server that answers each request by `script`.
    ///
    /// - Throws: `LoopbackFailure` if the system provides no socket.
    public convenience init(_ script: @escaping Script) throws {
        try self.init(beforeContent: { _, _ in }, script)
    }

    /// The same; `beforeContent` gets the head of each request before its content is read.
    ///
    /// - Throws: `LoopbackFailure` if the system provides no socket.
    package init(beforeContent: @escaping Script, _ script: @escaping Script) throws {
        let (listener, port) = try LoopbackSocket.listen()
        self.listener = listener
        self.port = port
        state = LoopbackServerState()
        let state = state
        LoopbackSocket.startThread {
            while let socket = LoopbackSocket.accept(listener) {
                guard let connection = state.open(socket) else { break }
                LoopbackSocket.startThread {
                    Self.serve(connection, state, beforeContent, script)
                }
            }
            LoopbackSocket.close(listener)
        }
    }

    deinit { stop() }

    /// `http://127.0.0.1:` followed by the port.
    public var baseURL: String { "http://127.0.0.1:\(port)" }

    /// The number of complete requests.
    public var requestCount: Int { state.counters.withLock { $0.requests } }
    /// The number of connections so far.
    public var connectionCount: Int { state.counters.withLock { $0.connections } }
    /// The number of open connections.
    public var openConnectionCount: Int { state.counters.withLock { $0.open.count } }
    /// The first 256 complete requests, in order.
    public var requests: [LoopbackRequest] { state.counters.withLock { $0.log } }

    /// Closes the listener and every connection.
    public func stop() {
        // The listener is shut down, not closed: `accept` returns, and the accepting thread closes
        // it.
        if state.stop() { LoopbackSocket.shutDown(listener) }
    }

    private static func serve(
        _ connection: LoopbackConnection,
        _ state: LoopbackServerState,
        _ beforeContent: Script,
        _ script: Script
    ) {
        while let request = connection.readRequest({ beforeContent($0, connection) }) {
            state.count(request)
            script(request, connection)
            if connection.isClosed { break }
        }
        state.close(connection)
    }
}

/// The counters of one server, and its connections, which `stop` closes.
final class LoopbackServerState: Sendable {
    struct Counters: Sendable {
        var requests = 0
        var connections = 0
        var open: [Int: LoopbackConnection] = [:]
        var log: [LoopbackRequest] = []
        var isStopped = false
    }

    /// Enough for every test, and a bound for tests that send many large bodies.
    static let logCountMax = 256

    let counters = Mutex(Counters())

    func open(_ socket: Int32) -> LoopbackConnection? {
        counters.withLock { counters in
            guard !counters.isStopped else {
                LoopbackSocket.close(socket)
                return nil
            }
            counters.connections += 1
            let connection = LoopbackConnection(socket: socket, number: counters.connections)
            counters.open[connection.number] = connection
            return connection
        }
    }

    func count(_ request: LoopbackRequest) {
        counters.withLock { counters in
            counters.requests += 1
            if counters.log.count < Self.logCountMax { counters.log.append(request) }
        }
    }

    func close(_ connection: LoopbackConnection) {
        counters.withLock { $0.open[connection.number] = nil }
        connection.release()
    }

    /// Returns `true` for the first call.
    func stop() -> Bool {
        counters.withLock { counters in
            defer { counters.isStopped = true }
            for connection in counters.open.values { connection.interrupt() }
            return !counters.isStopped
        }
    }
}
