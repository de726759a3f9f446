/// A response as received over the wire.
struct WireResponse: Sendable {
    var status = 0
    var statusLine = ""
    var fields: [(name: String, value: String)] = []
    var body: [UInt8] = []
    /// Whether the body was complete according to its framing.
    var isComplete = true
    var informational: [WireResponse] = []

    var text: String { String(decoding: body, as: UTF8.self) }

    subscript(name: String) -> String? {
        let values = fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    var age: Int? { self["Age"].flatMap { Int($0) } }
    var isHit: Bool { self["Cache-Status"]?.contains("; hit") == true }
}

/// A client that sends exactly the bytes of a test.
final class WireClient: Sendable {
    let socket: WireSocket

    init(_ port: UInt16, receiveBytes: Int32? = nil) throws {
        socket = try WireSocket.connected(to: port, receiveBytes: receiveBytes)
    }

    /// Sends bytes and reads one response.
    func exchange(_ text: String, isHead: Bool = false) async throws -> WireResponse {
        try await onThread { [self] in
            try socket.write(text)
            return try read(isHead: isHead)
        }
    }

    func send(_ text: String) async throws {
        try await onThread { [self] in try socket.write(text) }
    }

    func response(isHead: Bool = false) async throws -> WireResponse {
        try await onThread { [self] in try read(isHead: isHead) }
    }

    /// Reads all bytes until the connection ends.
    func rest() async throws -> String {
        try await onThread { [self] in
            String(decoding: try socket.readToEndOrReset(), as: UTF8.self)
        }
    }

    /// Whether the server has closed the connection without further bytes.
    func isClosed() async throws -> Bool { try await rest().isEmpty }

    func read(isHead: Bool) throws -> WireResponse {
        var informational: [WireResponse] = []
        while true {
            var response = try readHead()
            if response.status < 200 {
                informational.append(response)
                continue
            }
            response.informational = informational
            if isHead || response.status == 204 || response.status == 304 { return response }
            try readBody(&response)
            return response
        }
    }

    private func readHead() throws -> WireResponse {
        guard let head = try socket.read(through: "\r\n\r\n") else {
            throw WireFailure("The connection ended before a head")
        }
        var response = WireResponse()
        let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
        response.statusLine = lines[0]
        guard lines[0].hasPrefix("HTTP/1.1 "), let status = Int(lines[0].dropFirst(9).prefix(3))
        else { throw WireFailure("No status line: \(lines[0])") }
        response.status = status
        for line in lines.dropFirst() where !line.isEmpty {
            guard let colon = line.firstIndex(of: ":") else {
                throw WireFailure("No field: \(line)")
            }
            let value = line[line.index(after: colon)...].trimmingPrefix(while: { $0 == " " })
            response.fields.append((String(line[..<colon]), String(value)))
        }
        return response
    }

    private func readBody(_ response: inout WireResponse) throws {
        if response["Transfer-Encoding"]?.lowercased() == "chunked" {
            return try readChunks(&response)
        }
        guard let length = response["Content-Length"].flatMap({ Int($0) }) else {
            response.body = try socket.readToEnd()
            return
        }
        if let body = try? socket.read(exactly: length) {
            response.body = body
        } else {
            response.isComplete = false
            response.body = try socket.readToEndOrReset()
        }
    }

    private func readChunks(_ response: inout WireResponse) throws {
        while true {
            guard let line = try? socket.read(through: "\r\n"),
                let size = Int(String(decoding: line.dropLast(2), as: UTF8.self), radix: 16),
                let data = try? socket.read(exactly: size + 2)
            else {
                response.isComplete = false
                return
            }
            response.body += data.dropLast(2)
            if size == 0 { return }
        }
    }
}

extension String {
    func components(separatedBy separator: String) -> [String] {
        split(separator: separator, omittingEmptySubsequences: false).map(String.init)
    }
}
