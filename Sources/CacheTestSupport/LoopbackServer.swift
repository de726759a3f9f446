internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// An HTTP/1.1 server on the loopback interface that does exactly what a test tells it.
///
/// Each connection has a thread, so a script is straight code: it writes what it likes, waits for
/// a gate, closes in the middle. The port is the system's choice. The server ends with `stop` or
/// with its last reference.
public final class LoopbackServer: Sendable {
    /// What the server does with one request; returning keeps the connection open, unless the
    /// script closed it.
    public typealias Script = @Sendable (LoopbackRequest, LoopbackConnection) -> Void

    /// The port it listens on.
    public let port: UInt16
    private let state: LoopbackServerState
    private let listener: Int32

    /// A server that answers each request by `script`.
    ///
    /// - Throws: `LoopbackFailure` when the system gives no socket.
    public init(_ script: @escaping Script) throws {
        let (listener, port) = try LoopbackSocket.listen()
        self.listener = listener
        self.port = port
        state = LoopbackServerState()
        let state = state
        LoopbackSocket.startThread {
            while let socket = LoopbackSocket.accept(listener) {
                guard let connection = state.open(socket) else { break }
                LoopbackSocket.startThread {
                    Self.serve(connection, state, script)
                }
            }
            LoopbackSocket.close(listener)
        }
    }

    deinit { stop() }

    /// `http://127.0.0.1:` and the port.
    public var baseURL: String { "http://127.0.0.1:\(port)" }

    /// How many requests have come in whole.
    public var requestCount: Int { state.counters.withLock { $0.requests } }
    /// How many connections have been made.
    public var connectionCount: Int { state.counters.withLock { $0.connections } }
    /// How many connections are open now.
    public var openConnectionCount: Int { state.counters.withLock { $0.open.count } }
    /// The first 256 requests that have come in whole, in order.
    public var requests: [LoopbackRequest] { state.counters.withLock { $0.log } }

    /// Closes the listener and every connection.
    public func stop() {
        // Shut down and not closed: `accept` returns, and the accepting thread closes it.
        if state.stop() { LoopbackSocket.shutDown(listener) }
    }

    private static func serve(
        _ connection: LoopbackConnection,
        _ state: LoopbackServerState,
        _ script: Script
    ) {
        while let request = connection.readRequest() {
            state.count(request)
            script(request, connection)
            if connection.isClosed { break }
        }
        state.close(connection)
    }
}

/// The counters of one server, and the connections it must close at its end.
final class LoopbackServerState: Sendable {
    struct Counters: Sendable {
        var requests = 0
        var connections = 0
        var open: [Int: LoopbackConnection] = [:]
        var log: [LoopbackRequest] = []
        var isStopped = false
    }

    /// More than any test looks at, and few enough for a test that sends many large bodies.
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

    /// True for the first call.
    func stop() -> Bool {
        counters.withLock { counters in
            defer { counters.isStopped = true }
            for connection in counters.open.values { connection.interrupt() }
            return !counters.isStopped
        }
    }
}
