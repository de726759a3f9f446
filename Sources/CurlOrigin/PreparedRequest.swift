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
    let headTimeoutSeconds: Double?
    /// Whether only a connection is made and no request is sent.
    let isConnectOnly: Bool

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
        isSecure = target.scheme == .https
        requestTarget = isProxied && !isSecure ? target.absoluteForm : target.originForm
        lines = Self.lines(request.fields)
        headTimeoutSeconds = request.timeout?.seconds
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

    /// Returns the lines to send.
    ///
    /// The fields of the caller's connection and its credentials for a proxy end here (RFC 9110
    /// §7.6.1, §11.7.2). libcurl writes the framing.
    private static func lines(_ given: HeaderFields) -> [[UInt8]] {
        let fields =
            Mutant.forwardsConnectionFields.isOn
            ? given : HeaderFields(HopByHop.strip(given.section, for: .forwardingRequest))
        var lines: [[UInt8]] = []
        fields.forEachLine { name, value in
            guard !isOfFraming(name) else { return }
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
        return lines
    }

    private static func isOfFraming(_ name: UnsafeRawBufferPointer) -> Bool {
        framingFields.contains(String(decoding: name, as: UTF8.self).lowercased())
    }

    private static let framingFields: Set<String> = ["content-length", "expect", "http2-settings"]
}
