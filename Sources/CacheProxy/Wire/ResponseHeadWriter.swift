package import CacheEngine
import HTTPCaching

/// Writes response heads in the form of RFC 9112 §4.
///
/// Fields that belong to the origin's connection are left out; framing, `Date` where it is missing,
/// `Via` and `Connection` are added.
package struct ResponseHeadWriter {
    /// What `Connection` says.
    package enum Persistence: Hashable, Sendable {
        /// Nothing: the connection goes on, as it does in HTTP/1.1.
        case goesOn
        /// That it goes on, for an HTTP/1.0 client who asked.
        case goesOnSaidSo
        case ends
    }

    private let viaLine: [UInt8]
    private var dateLine = [UInt8](repeating: 0, count: 6 + HTTPDate.formattedBytes + 2)
    private var dateSeconds = Int64.min

    package init(name: String) {
        viaLine = Array("Via: 1.1 \(name)\r\n".utf8)
        dateLine.withUnsafeMutableBytes { bytes in
            bytes.copyBytes(from: "Date: ".utf8)
            bytes[bytes.count - 2] = 0x0D
            bytes[bytes.count - 1] = 0x0A
        }
    }

    /// Appends a whole head, empty line included.
    package mutating func write(
        status: Int,
        fields: HeaderFields,
        framing: ResponseFraming,
        persistence: Persistence,
        nowSeconds: Int64,
        to out: OutputBuffer
    ) {
        Self.writeStatusLine(status, to: out)
        // Where there is no content the origin's length still describes it, except behind a 204, which
        // has none (RFC 9110 §8.6).
        let keepsLength = framing == .none && status != 204
        let kept = Self.writeFields(fields, keepsLength: keepsLength, to: out)
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

    /// Appends the head of a 1xx (RFC 9110 §15.2): its fields, and nothing of ours.
    package static func writeInformational(
        status: Int,
        fields: HeaderFields,
        to out: OutputBuffer
    ) {
        writeStatusLine(status, to: out)
        _ = writeFields(fields, keepsLength: false, to: out)
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

    private struct Kept {
        var hasDate = false
    }

    private static func writeFields(
        _ fields: HeaderFields,
        keepsLength: Bool,
        to out: OutputBuffer
    ) -> Kept {
        let start = out.count
        var kept = Kept()
        var hasConnection = false
        fields.forEachRun { run in
            var cursor = FieldCursor(run)
            while let line = cursor.next() {
                let name = line.name.buffer
                switch name.count {
                case 2, 7, 10, 14, 16, 17, 19:
                    guard let belongs = drops(name, keepsLength: keepsLength) else { break }
                    if belongs { hasConnection = true }
                    continue
                case 4:
                    if RequestParser.equals(name, "date") { kept.hasDate = true }
                default: break
                }
                write(name, line.value.buffer, to: out)
            }
        }
        guard hasConnection else { return kept }
        let stripped = HopByHop.strip(fields.section, for: .forwardingResponse)
        out.truncate(to: start)
        return writeFields(HeaderFields(stripped), keepsLength: keepsLength, to: out)
    }

    /// Nil for a field that goes to the client; true for a Connection field, which may name others.
    private static func drops(_ name: UnsafeRawBufferPointer, keepsLength: Bool) -> Bool? {
        switch name.count {
        case 2: RequestParser.equals(name, "te") ? false : nil
        case 7:
            RequestParser.equals(name, "trailer") || RequestParser.equals(name, "upgrade")
                ? false : nil
        case 10:
            RequestParser.equals(name, "connection")
                ? true : RequestParser.equals(name, "keep-alive") ? false : nil
        case 14: !keepsLength && RequestParser.equals(name, "content-length") ? false : nil
        case 16: RequestParser.equals(name, "proxy-connection") ? false : nil
        case 17: RequestParser.equals(name, "transfer-encoding") ? false : nil
        case 19: RequestParser.equals(name, "proxy-authorization") ? false : nil
        default: nil
        }
    }

    @inline(__always)
    private static func write(
        _ name: UnsafeRawBufferPointer,
        _ value: UnsafeRawBufferPointer,
        to out: OutputBuffer
    ) {
        let target = out.room(for: name.count + value.count + 4)
        if let source = name.baseAddress { target.copyMemory(from: source, byteCount: name.count) }
        target.storeBytes(of: 0x3A, toByteOffset: name.count, as: UInt8.self)
        target.storeBytes(of: 0x20, toByteOffset: name.count + 1, as: UInt8.self)
        if let source = value.baseAddress {
            (target + name.count + 2).copyMemory(from: source, byteCount: value.count)
        }
        let end = name.count + value.count + 2
        target.storeBytes(of: 0x0D, toByteOffset: end, as: UInt8.self)
        target.storeBytes(of: 0x0A, toByteOffset: end + 1, as: UInt8.self)
        out.advance(by: end + 2)
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
