import CacheTestSupport
import Platform
import RESP
import Synchronization

@testable import RedisClient

/// A server on the loopback interface that does what a test says: a thread for each connection.
final class FakeServer: Sendable {
    /// The server's end of one connection; one thread uses it.
    final class Connection {
        let number: Int
        fileprivate let socket: Int32
        private var parser = RESPParser()
        private var bytes: [UInt8] = []
        private var place = 0

        fileprivate init(_ number: Int, _ socket: Int32) {
            self.number = number
            self.socket = socket
        }

        /// The words of the next command; `nil` at the end of the connection.
        func next() -> [String]? {
            while true {
                let step = parser.parse(bytes.span, from: place)
                if case .value(let value, let end) = step {
                    place = end
                    return value.elements?.map { $0.text ?? "" } ?? []
                }
                guard case .needsMore = step, let more = read() else { return nil }
                bytes = more
                place = 0
            }
        }

        private func read() -> [UInt8]? {
            let more = [UInt8](unsafeUninitializedCapacity: 1 << 16) { room, count in
                count = max(0, recv(socket, room.baseAddress, room.count, 0))
            }
            return more.isEmpty ? nil : more
        }

        @discardableResult
        func send(_ text: String) -> Bool {
            var rest = Array(text.utf8)[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes {
                    Platform.send(socket, $0.baseAddress, $0.count, sendsNoSignal)
                }
                guard count > 0 else { return false }
                rest = rest.dropFirst(count)
            }
            return true
        }

        /// Reads nothing more, and waits for the client to close.
        func waitForClose() {
            while read() != nil {}
        }

        /// Reads to the end of the connection; returns its error, or 0 if the client has closed it in
        /// order.
        func endError() -> Int32 {
            var room = [UInt8](repeating: 0, count: 1 << 12)
            while true {
                let count = recv(socket, &room, room.count, 0)
                if count <= 0 { return count < 0 ? errno : 0 }
            }
        }

        /// Ends the server's direction, and waits for the client to close.
        func end() {
            shutdown(socket, Int32(SHUT_WR))
            waitForClose()
        }

        /// Answers PING and every other command as `answer` says, until that returns `nil`.
        func serve(_ answer: ([String]) -> String?) {
            while let words = next() {
                if words == ["PING"] {
                    send("+PONG\r\n")
                } else if let text = answer(words) {
                    send(text)
                } else {
                    return
                }
            }
        }
    }

    /// What the threads use; it outlives the server until they end.
    private final class Shared: Sendable {
        struct State: Sendable {
            var sockets: Set<Int32> = []
            var connectionCount = 0
            var isStopped = false
        }

        let listener: Int32
        let state = Mutex(State())

        init(_ listener: Int32) { self.listener = listener }

        deinit { _ = Platform.close(listener) }

        func accept() -> Int32? {
            let socket = Platform.accept(listener, nil, nil)
            guard socket >= 0 else { return nil }
            state.withLock { state in
                state.connectionCount += 1
                state.sockets.insert(socket)
                if state.isStopped { shutdown(socket, Int32(SHUT_RDWR)) }
            }
            return socket
        }

        func close(_ socket: Int32) {
            state.withLock { state in
                state.sockets.remove(socket)
                _ = Platform.close(socket)
            }
        }
    }

    private let shared: Shared
    let port: UInt16

    /// Serves each connection by `serve`, which closes it when it returns.
    init(_ serve: @escaping @Sendable (Connection) -> Void) throws {
        let (listener, port) = try LoopbackSocket.listen()
        self.port = port
        shared = Shared(listener)
        let thread = try SystemThread { [shared] in
            while let socket = shared.accept() {
                let number = shared.state.withLock { $0.connectionCount }
                let connection = try? SystemThread {
                    serve(Connection(number, socket))
                    shared.close(socket)
                }
                connection?.detach()
            }
        }
        thread.detach()
    }

    /// A server that replies with the last word of each command.
    static func echo() throws -> FakeServer {
        try FakeServer { connection in connection.serve { "+\($0.last ?? "")\r\n" } }
    }

    deinit { stop() }

    var address: NodeAddress { NodeAddress(port) }
    var url: String { "redis://127.0.0.1:\(port)" }
    var connectionCount: Int { shared.state.withLock { $0.connectionCount } }
    var openCount: Int { shared.state.withLock { $0.sockets.count } }

    /// Ends every connection and accepts no other.
    func stop() {
        shared.state.withLock { state in
            state.isStopped = true
            shutdown(shared.listener, Int32(SHUT_RDWR))
            for socket in state.sockets { shutdown(socket, Int32(SHUT_RDWR)) }
        }
    }
}
