import CacheEngine
import HTTPCaching
import Platform

/// One request in the log: the combined format, the source of the response, the seconds, and the
/// host.
///
///     192.0.2.1 - - [01/Jan/2024:00:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "curl" fresh 0.000 a
final class AccessLogLine {
    let client: String
    let requestLine: [UInt8]
    let referer: [UInt8]
    let agent: [UInt8]
    var host: [UInt8]
    let startedNanoseconds: UInt64
    var status = 0
    var bodyBytes: Int?
    var source: CacheInfo.Source?

    init(
        client: String,
        requestLine: [UInt8],
        referer: [UInt8],
        agent: [UInt8],
        host: [UInt8],
        startedNanoseconds: UInt64
    ) {
        self.client = client
        self.requestLine = requestLine
        self.referer = referer
        self.agent = agent
        self.host = host
        self.startedNanoseconds = startedNanoseconds
    }

    /// Writes the line; bytes that could end a quoted part or the line are written as `\xNN`.
    func write(nowSeconds: Int64, nowNanoseconds: UInt64, to out: OutputBuffer) {
        out.append(text: client.isEmpty ? "-" : client)
        out.append(" - - [")
        Self.append(date: nowSeconds, to: out)
        out.append("] \"")
        Self.append(escaped: requestLine, to: out)
        out.append("\" ")
        out.append(decimal: status)
        out.append(" ")
        if let bodyBytes { out.append(decimal: bodyBytes) } else { out.append("-") }
        out.append(" \"")
        Self.append(escaped: referer, to: out)
        out.append("\" \"")
        Self.append(escaped: agent, to: out)
        out.append("\" ")
        out.append(text: source?.rawValue ?? "-")
        out.append(" ")
        let micros = Int((nowNanoseconds &- startedNanoseconds) / 1_000)
        out.append(decimal: micros / 1_000_000)
        out.append(".")
        let fraction = String(micros % 1_000_000)
        out.append(text: String(repeating: "0", count: 6 - fraction.utf8.count) + fraction)
        out.append(" ")
        Self.append(escaped: host, to: out)
        out.append("\n")
    }

    private static func append(escaped text: [UInt8], to out: OutputBuffer) {
        if text.isEmpty { return out.append("-") }
        for byte in text {
            if byte < 0x20 || byte >= 0x7F || byte == 0x22 || byte == 0x5C {
                out.append("\\x")
                if byte < 0x10 { out.append("0") }
                out.append(hexadecimal: Int(byte))
            } else {
                out.append(byte: byte)
            }
        }
    }

    /// `01/Jan/2024:00:00:00 +0000`, taken from HTTP's form of the date.
    private static func append(date seconds: Int64, to out: OutputBuffer) {
        let text = Array(HTTPDate.string(seconds).utf8)
        out.append(text: String(decoding: text[5..<7], as: UTF8.self) + "/")
        out.append(text: String(decoding: text[8..<11], as: UTF8.self) + "/")
        out.append(text: String(decoding: text[12..<16], as: UTF8.self) + ":")
        out.append(text: String(decoding: text[17..<25], as: UTF8.self) + " +0000")
    }
}

/// Gathers the lines of one worker and writes them together.
final class AccessLog {
    /// Bytes gathered before they are written.
    private static let gatheredBytesMax = 64 * 1024

    private let file: AccessLogFile
    private let out = OutputBuffer(capacity: gatheredBytesMax + 16 * 1024)

    init(_ file: AccessLogFile) { self.file = file }

    func append(_ line: AccessLogLine, nowSeconds: Int64, nowNanoseconds: UInt64) {
        line.write(nowSeconds: nowSeconds, nowNanoseconds: nowNanoseconds, to: out)
        if out.count >= Self.gatheredBytesMax { flush() }
    }

    /// Writes the gathered lines, and earlier ones that still wait.
    func flush() {
        file.write(out.bytes)
        out.removeAll()
    }

    func finish() {
        flush()
        file.finish()
    }
}

extension Worker {
    /// Begins the line of a request whose head cannot be read: it has the client alone.
    func beginLog(_ connection: Connection) {
        connection.logLine = AccessLogLine(
            client: connection.clientAddress,
            requestLine: [],
            referer: [],
            agent: [],
            host: [],
            startedNanoseconds: clock.monotonicNanoseconds
        )
    }

    func beginLog(_ connection: Connection, _ head: RequestHead, _ bytes: UnsafeRawBufferPointer) {
        func value(_ name: StaticString) -> [UInt8] {
            for place in head.fields
            where RequestParser.equals(UnsafeRawBufferPointer(rebasing: bytes[place.name]), name) {
                return [UInt8](bytes[place.value])
            }
            return []
        }
        let version: StaticString = head.flags.contains(.isOldVersion) ? " HTTP/1.0" : " HTTP/1.1"
        connection.logLine = AccessLogLine(
            client: connection.clientAddress,
            requestLine: [UInt8](bytes[head.method.lowerBound..<head.target.upperBound])
                + Array("\(version)".utf8),
            referer: value("referer"),
            agent: value("user-agent"),
            host: value("host"),
            startedNanoseconds: clock.monotonicNanoseconds
        )
    }

    func noteLog(_ connection: Connection, _ status: Int, _ info: CacheInfo) {
        connection.logLine?.status = status
        connection.logLine?.source = info.source
    }

    func finishLog(_ connection: Connection) {
        guard let line = connection.logLine else { return }
        connection.logLine = nil
        // The client left before the response; other servers log the same number.
        if line.status == 0 { line.status = 499 }
        if connection.response.framing != .none { line.bodyBytes = connection.response.bodyBytes }
        log?.append(
            line,
            nowSeconds: nowSeconds,
            nowNanoseconds: clock.monotonicNanoseconds
        )
    }
}
