import Foundation
import Platform
import Synchronization

/// An origin on a real socket whose responses are scripted byte by byte.
final class WireOrigin: Sendable {
    struct Request: Sendable {
        var method: String
        var target: String
        var fields: [(name: String, value: String)]
        var body: [UInt8]
        /// The number of its connection, and whether it was the first request there.
        var connection: Int
        var isFirst: Bool
        /// The number of earlier requests on all connections.
        var number: Int

        subscript(name: String) -> String? {
            let values = fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
            return values.isEmpty ? nil : values.joined(separator: ", ")
        }
        var head: String { "\(method) \(target)" }
    }

    /// The fate of the connection after a response.
    enum Then: Sendable { case keep, end, reset }

    typealias Script = @Sendable (Request, WireSocket) throws -> Then

    private struct State {
        var requests: [Request] = []
        var sockets: [WireSocket] = []
        var isStopped = false
    }

    let port: UInt16
    private let listener: Int32
    private let ended = DispatchSemaphore(value: 0)
    private let state = Mutex(State())
    private let script: Script

    init(port wanted: UInt16 = 0, _ script: @escaping Script) throws {
        self.script = script
        (listener, port) = try WireSocket.listening(at: wanted, waiting: 1_024)
        let thread = Thread { [self] in acceptAll() }
        thread.stackSize = 512 * 1024
        thread.start()
    }

    var requests: [Request] { state.withLock { $0.requests } }
    var heads: [String] { requests.map(\.head) }
    var count: Int { state.withLock { $0.requests.count } }

    /// The connections that are open now.
    var openConnectionCount: Int { state.withLock { $0.sockets.count } }

    func forget() { state.withLock { $0.requests = [] } }

    /// Closes the listener and every connection; on return the port is free.
    func stop() {
        let isFirst = state.withLock { state in
            guard !state.isStopped else { return false }
            state.isStopped = true
            shutdown(listener, Int32(SHUT_RDWR))
            // Inside the lock: a thread that resets a connection removes its socket before it frees
            // the descriptor.
            for socket in state.sockets { shutdown(socket.descriptor, Int32(SHUT_RDWR)) }
            return true
        }
        if isFirst { _ = ended.wait(timeout: .now() + .seconds(WireSocket.limitSeconds)) }
    }

    private func acceptAll() {
        // Only the accepting thread closes the listener. If another thread closed it, `accept`
        // could use a descriptor that has become another listener's.
        defer {
            close(listener)
            ended.signal()
        }
        var number = 0
        while true {
            let descriptor = accept(listener, nil, nil)
            if descriptor < 0 {
                if errno == EINTR || errno == ECONNABORTED { continue }
                return
            }
            let socket = WireSocket(descriptor)
            let isStopped = state.withLock { state in
                state.sockets.append(socket)
                return state.isStopped
            }
            if isStopped { return }
            number += 1
            let connection = number
            let thread = Thread { [self] in serve(socket, connection) }
            thread.stackSize = 512 * 1024
            thread.start()
        }
    }

    private func serve(_ socket: WireSocket, _ connection: Int) {
        defer {
            shutdown(socket.descriptor, Int32(SHUT_RDWR))
            state.withLock { $0.sockets.removeAll { $0 === socket } }
        }
        var isFirst = true
        while let request = try? read(socket, connection, isFirst) {
            isFirst = false
            switch try? script(request, socket) {
            case .keep: continue
            case .end, nil: return
            case .reset:
                state.withLock { $0.sockets.removeAll { $0 === socket } }
                socket.abort()
                return
            }
        }
    }

    private func read(_ socket: WireSocket, _ connection: Int, _ isFirst: Bool) throws -> Request? {
        guard let head = try socket.read(through: "\r\n\r\n") else { return nil }
        let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
        let words = lines[0].split(separator: " ").map(String.init)
        guard words.count == 3 else { return nil }
        var request = Request(
            method: words[0],
            target: words[1],
            fields: [],
            body: [],
            connection: connection,
            isFirst: isFirst,
            number: 0
        )
        for line in lines.dropFirst() where !line.isEmpty {
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { return nil }
            request.fields.append((String(parts[0]), parts[1].trimmingCharacters(in: .whitespaces)))
        }
        if request["Transfer-Encoding"] != nil {
            while let line = try socket.read(through: "\r\n") {
                let text = String(decoding: line.dropLast(2), as: UTF8.self)
                guard let size = Int(text, radix: 16),
                    let data = try socket.read(exactly: size + 2)
                else { return nil }
                request.body += data.dropLast(2)
                if size == 0 { break }
            }
        } else if let length = request["Content-Length"].flatMap({ Int($0) }) {
            guard let body = try socket.read(exactly: length) else { return nil }
            request.body = body
        }
        return state.withLock { state in
            request.number = state.requests.count
            state.requests.append(request)
            return request
        }
    }
}

extension WireSocket {
    /// Writes a response with a Content-Length; the caller adds a `Date` if it needs one.
    func answer(
        _ status: Int = 200,
        _ fields: [String] = [],
        _ body: String = "",
        isHead: Bool = false
    ) throws -> WireOrigin.Then {
        var text = "HTTP/1.1 \(status) X\r\n" + fields.map { $0 + "\r\n" }.joined()
        if status != 304, status != 204 { text += "Content-Length: \(body.utf8.count)\r\n" }
        try write(text + "\r\n" + (isHead ? "" : body))
        return .keep
    }
}
