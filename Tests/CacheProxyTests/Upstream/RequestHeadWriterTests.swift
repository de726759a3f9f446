import CacheEngine
import CurlOrigin
import Testing

@testable import CacheProxy

@Suite struct RequestHeadWriterTests {
    /// A source of bytes that no test reads.
    private final class SilentSource: BodySource {
        func next() async throws -> ByteChunk? { nil }
        func cancel() {}
    }

    private static func write(_ request: OriginRequest) throws -> String {
        let out = OutputBuffer()
        out.append("before ")
        _ = try RequestHeadWriter.write(UpstreamCall(request), to: out)
        return String(decoding: out.bytes.dropFirst(7), as: UTF8.self)
    }

    @Test func headCarriesTargetHostAndFields() throws {
        let request = OriginRequest(
            url: "http://a:81/b?c#d",
            fields: ["Accept": "*/*", "Empty": "", "X": "1"]
        )
        #expect(
            try Self.write(request)
                == "GET /b?c HTTP/1.1\r\nHost: a:81\r\nAccept: */*\r\nEmpty: \r\nX: 1\r\n\r\n"
        )
    }

    @Test(arguments: [
        ("http://a", "/"), ("http://a?q", "/?q"), ("http://a/x?y#z", "/x?y"), ("http://a#z", "/"),
        ("http://a/../b/./c//d", "/../b/./c//d"), ("http://a/%2F..%2f%zz", "/%2F..%2f%zz"),
        ("http://user:secret@a/x@y", "/x@y"), ("http://a/é?ü=\"<>", "/é?ü=\"<>"),
        ("http://a\\b", "/\\b"),
    ])
    func targetIsSentUnchanged(url: String, target: String) throws {
        let text = try Self.write(OriginRequest(url: url))
        #expect(text == "GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n")
    }

    @Test func optionsWithoutAPathIsForTheServer() throws {
        let server = OriginRequest(method: .options, url: "http://a")
        #expect(try Self.write(server).hasPrefix("OPTIONS * HTTP/1.1\r\n"))
        let root = OriginRequest(method: .options, url: "http://a/")
        #expect(try Self.write(root).hasPrefix("OPTIONS / HTTP/1.1\r\n"))
    }

    @Test func hostOfTheFieldsComesFirstAndOnce() throws {
        let request = OriginRequest(
            url: "http://a/",
            fields: HeaderFields([("X", "1"), ("host", "b:1"), ("Host", "c")])
        )
        #expect(try Self.write(request) == "GET / HTTP/1.1\r\nhost: b:1\r\nX: 1\r\n\r\n")
        let empty = OriginRequest(url: "https://a:443/", fields: ["Host": ""])
        #expect(try Self.write(empty) == "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    }

    /// Each field alone, so that only its own name can cause its removal.
    @Test(arguments: [
        "Connection", "Content-Length", "Expect", "HTTP2-Settings", "Keep-Alive",
        "Proxy-Authorization", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
    ])
    func fieldOfTheConnectionIsNotSent(name: String) throws {
        let request = OriginRequest(url: "http://a/", fields: HeaderFields([(name, "7")]))
        #expect(try Self.write(request) == "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    }

    struct Framing: Sendable {
        let method: HTTPMethod
        let body: BodyStream?
        var announced: String?
        let content: OriginRequest.Framing
    }

    private static let stream = BodyStream(SilentSource())

    @Test(arguments: [
        Framing(method: .get, body: nil, content: .none),
        Framing(method: .delete, body: nil, announced: "5", content: .none),
        Framing(method: .post, body: nil, content: .length(0)),
        Framing(method: .put, body: nil, content: .length(0)),
        Framing(method: .patch, body: nil, content: .length(0)),
        Framing(method: .head, body: BodyStream(ByteChunk(Array("abc".utf8))), content: .none),
        Framing(method: .get, body: BodyStream(ByteChunk(Array("abc".utf8))), content: .length(3)),
        Framing(
            method: .post,
            body: BodyStream(ByteChunk(Array("abc".utf8))),
            announced: "9",
            content: .length(3)
        ),
        Framing(method: .post, body: BodyStream(SilentSource(), count: 7), content: .length(7)),
        Framing(method: .post, body: stream, content: .chunked),
        Framing(method: .post, body: stream, announced: "12", content: .length(12)),
        Framing(method: .post, body: stream, announced: "0012", content: .length(12)),
    ])
    func framingFollowsTheContent(_ row: Framing) throws {
        var request = OriginRequest(method: row.method, url: "http://a/", body: row.body)
        if let announced = row.announced { request.fields.append("content-length", announced) }
        let out = OutputBuffer()
        let content = try RequestHeadWriter.write(UpstreamCall(request), to: out)
        #expect(content == row.content)
        let lines = String(decoding: out.bytes, as: UTF8.self).split(separator: "\r\n").dropFirst(2)
        switch content {
        case .none: #expect(lines.isEmpty)
        case .length(let count): #expect(lines == ["Content-Length: \(count)"])
        case .chunked: #expect(lines == ["Transfer-Encoding: chunked"])
        }
    }

    @Test(arguments: ["5, 6", "5, 5", "-5", "+5", "x", "", "9223372036854775808"])
    func announcedLengthMustBeOneNumber(_ announced: String) {
        var request = OriginRequest(method: .post, url: "http://a/", body: Self.stream)
        request.fields.append("Content-Length", announced)
        Self.expectRefusal(request, Self.invalidLength(announced))
    }

    @Test func announcedLengthMustBeOneLine() {
        var request = OriginRequest(method: .post, url: "http://a/", body: Self.stream)
        request.fields.append("Content-Length", "5")
        request.fields.append("Content-Length", "5")
        Self.expectRefusal(request, Self.invalidLength("5, 5"))
    }

    private static func invalidLength(_ value: String) -> String {
        "The request has an invalid Content-Length: `\(value)`; "
            + "give the number of bytes, or no field"
    }

    @Test(arguments: ["", "G T", "GET / HTTP/1.1\r\nX:", "CONNECT", "G\u{e9}T"])
    func methodThatCannotBeSentIsRefused(_ name: String) {
        let request = OriginRequest(method: HTTPMethod(name), url: "http://a/")
        let text = "The method `\(PlainText.excerpt(name))` cannot be sent; "
        Self.expectRefusal(request, text + "give a token other than CONNECT")
    }

    /// The buffer keeps what it held before.
    private static func expectRefusal(_ request: OriginRequest, _ detail: String) {
        let out = OutputBuffer()
        out.append("before")
        #expect(throws: CacheError(.requestInvalid, detail: detail)) {
            try RequestHeadWriter.write(UpstreamCall(request), to: out)
        }
        #expect(out.count == 6)
    }
}
