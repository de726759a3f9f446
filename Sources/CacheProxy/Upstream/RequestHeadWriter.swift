import CacheEngine
import CurlOrigin
import HTTPCaching

/// Writes the heads of requests to origins in the form of RFC 9112 §3.
///
/// `Host` comes first. The fields of the client's connection and of its framing are left out; the
/// framing of the content that is sent is added.
enum RequestHeadWriter {
    /// Appends the complete head of a call's request; appends nothing if it throws.
    ///
    /// - Throws: `CacheError.Code.requestInvalid` if the request cannot be sent.
    static func write(
        _ call: UpstreamCall,
        to out: OutputBuffer
    ) throws(CacheError) -> OriginRequest.Framing {
        let content = try call.request.framing()
        let url = call.url
        call.request.url.withByteRun { text in
            out.append(text: call.request.method.name)
            writeTarget(text[url.target], call.request.method.kind, to: out)
            if !writeHost(of: call.request.fields, to: out) { writeHost(of: url, text, to: out) }
        }
        writeFields(call.request.fields, to: out)
        switch content {
        case .none: break
        case .length(let count):
            out.append("Content-Length: ")
            out.append(decimal: count)
            out.append("\r\n")
        case .chunked: out.append("Transfer-Encoding: chunked\r\n")
        }
        out.append("\r\n")
        return content
    }

    /// OPTIONS of a URL without a path concerns the whole server (RFC 9112 §3.2.4).
    private static func writeTarget(
        _ target: ByteRun,
        _ method: MethodKind,
        to out: OutputBuffer
    ) {
        out.append(" ")
        if target.isEmpty {
            out.append(byte: method == .options ? .asterisk : .slash)
        } else {
            if target[0] != .slash { out.append(byte: .slash) }
            out.append(target.buffer)
        }
        out.append(" HTTP/1.1\r\n")
    }

    /// Appends the first `Host` of the fields; returns `false` if there is no such value.
    private static func writeHost(of fields: HeaderFields, to out: OutputBuffer) -> Bool {
        var isWritten = false
        fields.forEachRun { run in
            var cursor = FieldCursor(run)
            while !isWritten, let line = cursor.next() {
                guard line.name.count == 4, line.name.equals(lowercased: "host"),
                    !line.value.isEmpty
                else { continue }
                out.append(field: line.name.buffer, line.value.buffer)
                isWritten = true
            }
        }
        return isWritten
    }

    private static func writeHost(of url: UpstreamURL, _ text: ByteRun, to out: OutputBuffer) {
        out.append("Host: ")
        out.append(text[url.host].buffer)
        if !url.isDefaultPort {
            out.append(byte: .colon)
            out.append(decimal: url.port)
        }
        out.append("\r\n")
    }

    private static func writeFields(_ fields: HeaderFields, to out: OutputBuffer) {
        fields.forEachRun { run in
            var lines = FieldCursor(run)
            while let line = lines.next() {
                if isOwnedByConnection(line.name.buffer) { continue }
                out.append(field: line.name.buffer, line.value.buffer)
            }
        }
    }

    private static func isOwnedByConnection(_ name: UnsafeRawBufferPointer) -> Bool {
        switch name.count {
        case 2: RequestParser.equals(name, "te")
        case 4: RequestParser.equals(name, "host")
        case 6: RequestParser.equals(name, "expect")
        case 7: RequestParser.equals(name, "trailer") || RequestParser.equals(name, "upgrade")
        case 10:
            RequestParser.equals(name, "connection") || RequestParser.equals(name, "keep-alive")
        case 14:
            RequestParser.equals(name, "content-length")
                || RequestParser.equals(name, "http2-settings")
        case 16: RequestParser.equals(name, "proxy-connection")
        case 17: RequestParser.equals(name, "transfer-encoding")
        case 19: RequestParser.equals(name, "proxy-authorization")
        default: false
        }
    }
}
