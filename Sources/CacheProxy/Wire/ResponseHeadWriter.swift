import CacheEngine
import HTTPCaching

/// Field lines from which a head is written.
protocol FieldLines: ~Copyable {
    /// Calls `read` with the encoded lines, run by run.
    func forEachRun(_ read: (UnsafeRawBufferPointer) -> Void)
    /// A copy of all lines.
    var section: FieldSection { get }
}

extension HeaderFields: FieldLines {}

extension BorrowedResponse: FieldLines {
    var section: FieldSection { response.fields.section }
}

/// Writes response heads in the form of RFC 9112 §4.
///
/// Fields of the origin's connection are left out; framing, a missing `Date`, `Via` and
/// `Connection` are added.
struct ResponseHeadWriter {
    /// The content of `Connection`.
    enum Persistence: Hashable, Sendable {
        /// No field: the connection goes on, as is usual in HTTP/1.1.
        case goesOn
        /// `keep-alive`, for an HTTP/1.0 client that asked for it.
        case goesOnSaidSo
        case ends
    }

    /// Whether `Cache-Tag` and `Surrogate-Key` are left out.
    var stripsTags = false
    private let viaLine: [UInt8]
    private var dateLine = [UInt8](repeating: 0, count: 6 + HTTPDate.formattedBytes + 2)
    private var dateSeconds = Int64.min

    init(name: String) {
        viaLine = Array("Via: 1.1 \(name)\r\n".utf8)
        dateLine.withUnsafeMutableBytes { bytes in
            bytes.copyBytes(from: "Date: ".utf8)
            bytes[bytes.count - 2] = 0x0D
            bytes[bytes.count - 1] = 0x0A
        }
    }

    /// Appends a complete head with its empty line.
    mutating func write<Fields: FieldLines & ~Copyable>(
        status: Int,
        fields: borrowing Fields,
        framing: ResponseFraming,
        persistence: Persistence,
        nowSeconds: Int64,
        to out: OutputBuffer
    ) {
        Self.writeStatusLine(status, to: out)
        // The origin's length describes content that is not sent, except for a 204, which has none
        // (RFC 9110 §8.6).
        let keepsLength = framing == .none && status != 204
        let omitted = Omitted(hasLength: !keepsLength, hasTags: stripsTags)
        let kept = Self.writeFields(fields, omitted, to: out)
        switch framing {
        case .none, .untilClose: break
        case .length(let count):
            out.append("Content-Length: ")
            out.append(decimal: count)
            out.append("\r\n")
        case .chunked: out.append("Transfer-Encoding: chunked\r\n")
        }
        if !kept.hasDate { writeDate(nowSeconds, to: out) }
        viaLine.withUnsafeBytes { out.append($0) }
        switch persistence {
        case .goesOn: break
        case .goesOnSaidSo: out.append("Connection: keep-alive\r\n")
        case .ends: out.append("Connection: close\r\n")
        }
        out.append("\r\n")
    }

    /// Appends the head of a 1xx (RFC 9110 §15.2) with the origin's fields only.
    func writeInformational(
        status: Int,
        fields: HeaderFields,
        to out: OutputBuffer
    ) {
        Self.writeStatusLine(status, to: out)
        _ = Self.writeFields(fields, Omitted(hasLength: true, hasTags: stripsTags), to: out)
        out.append("\r\n")
    }

    private static func writeStatusLine(_ status: Int, to out: OutputBuffer) {
        if status == 200 {
            out.append("HTTP/1.1 200 OK\r\n")
            return
        }
        out.append("HTTP/1.1 ")
        out.append(decimal: min(max(status, 100), 999))
        out.append(" ")
        out.append(StatusPhrase.text(status))
        out.append("\r\n")
    }

    /// Fields that are left out besides those of the origin's connection.
    private struct Omitted {
        var hasLength: Bool
        var hasTags: Bool
    }

    private struct Kept {
        var hasDate = false
    }

    private static func writeFields<Fields: FieldLines & ~Copyable>(
        _ fields: borrowing Fields,
        _ omitted: Omitted,
        to out: OutputBuffer
    ) -> Kept {
        let start = out.count
        var kept = Kept()
        var hasConnection = false
        fields.forEachRun { run in
            var lines = FieldCursor(run)
            while let line = lines.next() {
                let name = line.name.buffer
                switch name.count {
                case 2, 7, 9, 10, 13, 14, 16, 17, 19:
                    guard let belongs = drops(name, omitted) else { break }
                    if belongs { hasConnection = true }
                    continue
                case 4:
                    if RequestParser.equals(name, "date") { kept.hasDate = true }
                default: break
                }
                out.append(field: name, line.value.buffer)
            }
        }
        guard hasConnection else { return kept }
        let stripped = HopByHop.strip(fields.section, for: .forwardingResponse)
        out.truncate(to: start)
        return writeFields(HeaderFields(stripped), omitted, to: out)
    }

    /// `nil` for a field that is written; `true` for a Connection field, which may name others.
    private static func drops(_ name: UnsafeRawBufferPointer, _ omitted: Omitted) -> Bool? {
        switch name.count {
        case 2: RequestParser.equals(name, "te") ? false : nil
        case 7:
            RequestParser.equals(name, "trailer") || RequestParser.equals(name, "upgrade")
                ? false : nil
        case 9: omitted.hasTags && RequestParser.equals(name, "cache-tag") ? false : nil
        case 10:
            RequestParser.equals(name, "connection")
                ? true : RequestParser.equals(name, "keep-alive") ? false : nil
        case 13: omitted.hasTags && RequestParser.equals(name, "surrogate-key") ? false : nil
        case 14: omitted.hasLength && RequestParser.equals(name, "content-length") ? false : nil
        case 16: RequestParser.equals(name, "proxy-connection") ? false : nil
        case 17 where Mutant.sendsTheOriginsCoding.isOn: nil
        case 17: RequestParser.equals(name, "transfer-encoding") ? false : nil
        case 19: RequestParser.equals(name, "proxy-authorization") ? false : nil
        default: nil
        }
    }

    private mutating func writeDate(_ nowSeconds: Int64, to out: OutputBuffer) {
        if nowSeconds != dateSeconds {
            dateSeconds = nowSeconds
            dateLine.withUnsafeMutableBytes { bytes in
                HTTPDate.format(nowSeconds, into: .init(rebasing: bytes[6...]))
            }
        }
        dateLine.withUnsafeBytes { out.append($0) }
    }
}
