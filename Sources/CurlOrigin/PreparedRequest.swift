internal import CacheEngine
internal import HTTPCaching

/// A validated request, in the form that libcurl accepts.
struct PreparedRequest: Sendable {
    let method: HTTPMethod
    let connectionURL: String
    let requestTarget: String
    let isSecure: Bool
    /// The field lines for libcurl, each ended by a NUL.
    let lines: [[UInt8]]
    let content: UploadPipe.Content
    let headTimeout: Duration?
    /// Whether only a connection is made and no request is sent.
    let isConnectOnly: Bool
    /// Whether its connection belongs to one user afterwards.
    let authenticatesConnection: Bool

    /// Whether sending the request twice has the same effect as sending it once (RFC 9110 §9.2.2).
    var isIdempotent: Bool { method.kind.isIdempotent }

    init(
        _ request: OriginRequest,
        isProxied: Bool,
        isConnectOnly: Bool = false
    ) throws(CacheError) {
        content = try Self.content(of: request)
        let target = try RequestTarget(request.url, method: request.method)
        method = request.method
        connectionURL = target.connectionURL
        isSecure = target.isSecure
        requestTarget = isProxied && !isSecure ? target.absoluteForm : target.originForm
        lines = Self.lines(request.fields)
        authenticatesConnection = request.fields.section.authenticatesConnection
        headTimeout = request.timeout
        self.isConnectOnly = isConnectOnly
    }

    private static func content(of request: OriginRequest) throws(CacheError)
        -> UploadPipe.Content
    {
        let framing = try request.framing()
        // libcurl turns a HEAD with content into a PUT.
        guard framing != .none else { return .none }
        guard let body = request.body else { return .chunk(.empty) }
        if let chunk = body.availableChunk { return .chunk(chunk) }
        if case .length(let count) = framing { return .stream(body, count: count) }
        return .stream(body, count: nil)
    }

    /// Returns the lines to send, without those of the caller's connection, its credentials for a
    /// proxy (RFC 9110 §11.7.2), and the framing, which libcurl writes.
    ///
    /// Fields that `Connection` lists are sent: the cache may have selected a variant by one.
    private static func lines(_ fields: HeaderFields) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        fields.forEachLine { name, value in
            guard !isOwnedByConnection(name) else { return }
            var line: [UInt8] = []
            line.reserveCapacity(name.count + value.count + 3)
            line.append(contentsOf: name)
            // In libcurl `Name;` sends an empty value, and `Name:` removes the line.
            line.append(UInt8(ascii: value.isEmpty ? ";" : ":"))
            if !value.isEmpty {
                line.append(UInt8(ascii: " "))
                line.append(contentsOf: value)
            }
            line.append(0)
            lines.append(line)
        }
        if !fields.contains("Accept") { lines.append([UInt8]("Accept:\0".utf8)) }
        lines.append([UInt8]("Expect:\0".utf8))
        lines.append([UInt8]("Proxy-Connection:\0".utf8))
        return lines
    }

    private static func isOwnedByConnection(_ name: UnsafeRawBufferPointer) -> Bool {
        let name = String(decoding: name, as: UTF8.self).lowercased()
        if name == "proxy-authorization", Mutant.sendsProxyAuthorization.isOn { return false }
        return connectionFields.contains(name)
    }

    private static let connectionFields: Set<String> = [
        "connection", "content-length", "expect", "http2-settings", "keep-alive",
        "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]
}
