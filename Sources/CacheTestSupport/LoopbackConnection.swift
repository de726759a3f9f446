internal import Synchronization

/// One connection of a test server, controlled by the script.
///
/// Reads and writes block the connection's own thread. Writes to a connection that the peer has
/// closed are dropped.
public final class LoopbackConnection: Sendable {
    /// The number of this connection on its server, from 1.
    public let number: Int
    private let socket: Int32
    /// Bytes received after the last request.
    ///
    /// Only the connection's thread uses them; the lock proves it to the compiler.
    private let pending = Mutex<[UInt8]>([])
    private let closing = Mutex((isClosed: false, isReleased: false))

    init(socket: Int32, number: Int) {
        self.socket = socket
        self.number = number
    }

    /// Whether the script has closed the connection.
    public var isClosed: Bool { closing.withLock { $0.isClosed } }

    // MARK: - Used by scripts

    /// Writes `bytes` unchanged; returns `false` if the peer has closed the connection.
    @discardableResult
    public func send(_ bytes: [UInt8]) -> Bool {
        !isClosed && LoopbackSocket.write(socket, bytes)
    }

    /// Writes `text` unchanged; returns `false` if the peer has closed the connection.
    @discardableResult
    public func send(_ text: String) -> Bool { send([UInt8](text.utf8)) }

    /// Writes a complete response with a Content-Length.
    public func respond(
        _ status: Int = 200,
        _ fields: [(String, String)] = [],
        body: String = ""
    ) {
        respond(status, fields, bytes: [UInt8](body.utf8))
    }

    /// Writes a complete response with a Content-Length.
    public func respond(_ status: Int = 200, _ fields: [(String, String)] = [], bytes: [UInt8]) {
        var head = "HTTP/1.1 \(status) \(status == 200 ? "OK" : "Scripted")\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        if status != 304, status != 204, status >= 200 {
            head += "Content-Length: \(bytes.count)\r\n"
        }
        send([UInt8]((head + "\r\n").utf8) + bytes)
    }

    /// Closes the connection in an orderly way.
    public func close() {
        closing.withLock { closing in
            if !closing.isClosed { LoopbackSocket.shutDown(socket) }
            closing.isClosed = true
        }
    }

    /// Closes the connection with a reset.
    public func reset() {
        LoopbackSocket.lingerNot(socket)
        closing.withLock { $0.isClosed = true }
    }

    /// Blocks until the peer sends bytes, and discards them.
    public func waitForBytes() { _ = LoopbackSocket.read(socket) }

    /// Blocks until the peer closes its side, and discards the bytes that it still sends.
    public func waitForClose() {
        while let bytes = LoopbackSocket.read(socket), !bytes.isEmpty {}
    }

    // MARK: - Used by the server

    /// Makes every blocked call on the socket return.
    func interrupt() {
        closing.withLock { closing in
            if !closing.isReleased { LoopbackSocket.shutDown(socket) }
            closing.isClosed = true
        }
    }

    func release() {
        closing.withLock { closing in
            if !closing.isReleased { LoopbackSocket.close(socket) }
            closing = (true, true)
        }
    }

    /// Returns the next request, or `nil` at the end of the connection.
    ///
    /// `headCame` gets the request before its content is read.
    func readRequest(_ headCame: (LoopbackRequest) -> Void) -> LoopbackRequest? {
        guard let head = readHead() else { return nil }
        var lines = head.split(separator: "\r\n", omittingEmptySubsequences: false)[...]
        let first = (lines.popFirst() ?? "").split(separator: " ", maxSplits: 2)
        guard first.count == 3 else { return nil }
        var request = LoopbackRequest(
            method: String(first[0]),
            target: String(first[1]),
            version: String(first[2]),
            fields: [],
            body: []
        )
        for line in lines {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            request.fields.append((String(line[..<colon]), String(value)))
        }
        headCame(request)
        guard let body = readBody(of: request) else { return nil }
        request.body = body
        return request
    }

    private func readBody(of request: LoopbackRequest) -> [UInt8]? {
        if let expectation = request["Expect"], expectation.lowercased() == "100-continue" {
            send("HTTP/1.1 100 Continue\r\n\r\n")
        }
        if let coding = request["Transfer-Encoding"], coding.lowercased() == "chunked" {
            return readChunks()
        }
        return take(Int(request["Content-Length"] ?? "0") ?? 0)
    }

    private func readChunks() -> [UInt8]? {
        var body: [UInt8] = []
        while let line = takeLine(), let count = Int(line.prefix { $0 != ";" }, radix: 16) {
            guard let chunk = take(count), takeLine() != nil else { return nil }
            if count == 0 { return body }
            body += chunk
        }
        return nil
    }

    private func readHead() -> String? {
        var head = ""
        while let line = takeLine() {
            if line.isEmpty { return head }
            head += head.isEmpty ? line : "\r\n" + line
        }
        return nil
    }

    private func takeLine() -> String? {
        pending.withLock { pending in
            var searched = 0
            while true {
                if let end = pending[searched...].firstIndex(of: 0x0A) {
                    let line = pending[..<end].filter { $0 != 0x0D }
                    pending.removeSubrange(...end)
                    return String(decoding: line, as: UTF8.self)
                }
                searched = pending.count
                guard let more = LoopbackSocket.read(socket), !more.isEmpty else { return nil }
                pending += more
            }
        }
    }

    private func take(_ count: Int) -> [UInt8]? {
        pending.withLock { pending in
            while pending.count < count {
                guard let more = LoopbackSocket.read(socket), !more.isEmpty else { return nil }
                pending += more
            }
            defer { pending.removeFirst(count) }
            return [UInt8](pending[..<count])
        }
    }
}
