import CacheEngine
import HTTPCaching
import Testing

@testable import CacheProxy

/// The key is the URL that the origin is asked for.
///
/// URLs that an origin may distinguish have different keys.
@Suite struct RequestURLTests {
    struct Row: Sendable {
        let target: String
        let host: String?
        let url: String?
        init(_ target: String, _ host: String?, _ url: String?) {
            self.target = target
            self.host = host
            self.url = url
        }
    }

    static let rows: [Row] = [
        .init("/a", "x", "http://x/a"), .init("/a", "EXAMPLE.com", "http://example.com/a"),
        .init("/A?Q=R", "x", "http://x/A?Q=R"), .init("/a", "x:80", "http://x/a"),
        .init("/a", "x:", "http://x/a"), .init("/a", "x:81", "http://x:81/a"),
        .init("/a", "x:443", "http://x:443/a"), .init("/a", "x.", "http://x./a"),
        .init("/a", "[::1]:80", "http://[::1]/a"), .init("/a", "[::1]", "http://[::1]/a"),
        .init("/a", "x:8a", nil), .init("/a", "x:1:2", nil), .init("/a", "x:123456", nil),
        .init("/a", "[::1", nil), .init("/a", "[]", nil), .init("/a", "", nil),
        .init("/a", ":80", nil), .init("/a", "a]b", nil), .init("/a", "[::1]x", nil),
        .init("/a", "a%zz", nil), .init("/a", "a%2", nil), .init("/a", "a%", nil),
        .init("/a", "a%2Fb", "http://a%2fb/a"), .init("/a", "[zz]", nil),
        .init("/a", "[1::2::3]", nil), .init("/a", "[::1%25eth0]", nil),
        .init("/a", "[1.2.3.4]", nil),
        .init("/a", "[::ffff:1.2.3.4]:1", "http://[::ffff:1.2.3.4]:1/a"),
        .init("/a", "x:65535", "http://x:65535/a"), .init("/a", "x:65536", nil),
        .init("http://a%zz/b", "x", nil), .init("http://[zz]/b", "x", nil),
        .init("http://y/b", "x:1:2", nil), .init("http://y/b", "[::", nil),
        .init("http://y/b", "a%zz", nil), .init("http://y/b", "x:99999", nil),
        .init("http://y/b", "", "http://y/b"), .init("http://y/b", "x:", "http://y/b"),
        .init("http://y/b", nil, "http://y/b"),
        .init("/a", nil, "http://default:9/a"),
        .init("http://Y/b", "x", "http://y/b"), .init("HTTP://y:80", "x", "http://y/"),
        .init("http://y?q", "x", "http://y/?q"), .init("https://y:443/b", "x", "https://y/b"),
        .init("https://y:80/b", "x", "https://y:80/b"), .init("ftp://y/b", "x", nil),
        .init("http://u@y/b", "x", nil), .init("http:///b", "x", nil), .init("y:80", "x", nil),
        .init("a", "x", nil), .init("*", "x", nil),
        .init("//e.com/a", "x", "http://x//e.com/a"), .init("/a/../b", "x", "http://x/a/../b"),
        .init("/a%2f..%2Fb", "x", "http://x/a%2f..%2Fb"),
        .init("/a;x.css", "x", "http://x/a;x.css"),
        .init("/a%3Fb%23c", "x", "http://x/a%3Fb%23c"), .init("/?", "x", "http://x/?"),
        .init("/a?x=1&x=2;x=3", "x", "http://x/a?x=1&x=2;x=3"),
        .init("/\\\"|^`{}", "x", "http://x/\\\"|^`{}"),
    ]

    @Test(arguments: rows)
    func targetAndHostMakeTheURL(_ row: Row) {
        let version = row.host == nil ? "1.0" : "1.1"
        let host = row.host.map { "Host: \($0)\r\n" } ?? ""
        let made = Self.make("GET \(row.target) HTTP/\(version)\r\n\(host)\r\n")
        #expect(made?.text == row.url)
    }

    /// The target, the scheme that the proxy in front told, and the URL.
    @Test(arguments: [
        ("/a", "x", RequestScheme.https, "https://x/a"), ("/a", "x:443", .https, "https://x/a"),
        ("/a", "x:80", .https, "https://x:80/a"), ("/a", "x:80", .http, "http://x/a"),
        ("http://y/b", "x", .https, "https://y/b"), ("https://y/b", "x", .http, "http://y/b"),
        ("http://y:443/b", "x", .https, "https://y/b"),
        ("https://y:443/b", "x", .http, "http://y:443/b"),
    ])
    func toldSchemeReplacesTheClaimOfTheTarget(
        _ row: (target: String, host: String, scheme: RequestScheme, url: String)
    ) throws {
        let text = "GET \(row.target) HTTP/1.1\r\nHost: \(row.host)\r\n\r\n"
        let url = try Array(text.utf8).withUnsafeBytes { bytes in
            var parser = RequestParser()
            _ = parser.parse(Span(_unsafeBytes: bytes), WireLimits())
            return try RequestURL.make(
                parser.head,
                bytes,
                defaultAuthority: "default:9",
                scheme: row.scheme
            ).get()
        }
        #expect(url.text == row.url)
        #expect(row.url.hasPrefix("\(row.scheme)://\(url.hostOverride ?? row.host)/"))
    }

    @Test func asteriskIsForOptionsOnly() {
        #expect(Self.make("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")?.text == "http://x")
        #expect(Self.make("OPTIONS http://X HTTP/1.1\r\nHost: x\r\n\r\n")?.text == "http://x")
        #expect(Self.make("OPTIONS / HTTP/1.1\r\nHost: x\r\n\r\n")?.text == "http://x/")
        #expect(Self.make("GET * HTTP/1.1\r\nHost: x\r\n\r\n") == nil)
    }

    @Test func absoluteTargetReplacesTheHostField() {
        let fields = Self.fields("GET http://Y:81/ HTTP/1.1\r\nHost: x\r\nA: b\r\n\r\n")
        #expect(fields.pairs.map { "\($0.name)=\($0.value)" } == ["Host=y:81", "A=b"])
    }

    /// Requests that share a key differ in nothing that the origin sees of their target.
    @Test(arguments: rows + [Row("/a", "X.y:80", "http://x.y/a"), Row("/a", "X:", "http://x/a")])
    func originSeesTheAuthorityOfTheKey(_ row: Row) {
        guard let url = row.url else { return }
        let version = row.host == nil ? "1.0" : "1.1"
        let host = row.host.map { "Host: \($0)\r\n" } ?? ""
        let fields = Self.fields("GET \(row.target) HTTP/\(version)\r\n\(host)\r\n")
        let authority = url.dropFirst(url.hasPrefix("https") ? 8 : 7).prefix { $0 != "/" }
        #expect(fields["Host"] == String(authority))
    }

    @Test func fieldsOfTheConnectionStayBehind() {
        let fields = Self.fields(
            "POST / HTTP/1.1\r\nHost: x\r\nConnection: close, X-Hop, Cache-Control\r\nX-Hop: 1\r\n"
                + "Keep-Alive: 5\r\nTE: trailers\r\nTrailer: a\r\nUpgrade: h2c\r\n"
                + "Proxy-Connection: x\r\nProxy-Authorization: y\r\nTransfer-Encoding: chunked\r\n"
                + "Expect: 100-continue\r\nCache-Control: no-store\r\nCookie: c\r\n\r\n"
        )
        #expect(fields.pairs.map(\.name) == ["Host", "Cache-Control", "Cookie"])
    }

    /// Each field alone, so that only its own name can cause its removal.
    @Test(arguments: [
        "Connection: close", "Keep-Alive: 5", "TE: trailers", "Trailer: a", "Upgrade: h2c",
        "Proxy-Connection: x", "Proxy-Authorization: y", "Content-Length: 1",
        "Transfer-Encoding: chunked", "Expect: 100-continue", "HTTP2-Settings: AAMA",
    ])
    func eachFieldOfTheConnectionStaysBehindByItself(line: String) {
        let fields = Self.fields("POST / HTTP/1.1\r\nHost: x\r\n\(line)\r\nCookie: c\r\n\r\n")
        #expect(fields.pairs.map(\.name) == ["Host", "Cookie"])
    }

    /// Every character of a name (RFC 9110 §5.6.2), at each of three places.
    @Test(arguments: (UInt8(0x21)...0x7E).filter(ByteClass.isToken))
    func namesWithOtherSignsAreForwardedOnlyIfTheyMay(_ byte: UInt8) {
        let character = Character(UnicodeScalar(byte))
        let isPlain = character.isLetter || character.isNumber || character == "-"
        for name in ["\(character)ab", "a\(character)b", "ab\(character)"] {
            let head = "GET / HTTP/1.1\r\nHost: x\r\n\(name): 1\r\nAccept: 2\r\n\r\n"
            let all = ["Host", name, "Accept"]
            #expect(Self.fields(head, names: .any).pairs.map(\.name) == all)
            let plain = Self.fields(head).pairs.map(\.name)
            #expect(plain == (isPlain ? all : ["Host", "Accept"]), "\(name)")
        }
    }

    static func make(_ text: String) -> RequestURL? {
        let (step, parser) = RequestParserTests.parseWhole(text)
        guard case .complete = step else { return nil }
        return try? Array(text.utf8).withUnsafeBytes {
            try RequestURL.make(parser.head, $0, defaultAuthority: "default:9").get()
        }
    }

    static func fields(
        _ text: String,
        names: ProxyConfiguration.FieldNames = .plain
    ) -> HeaderFields {
        let (_, parser) = RequestParserTests.parseWhole(text)
        return Array(text.utf8).withUnsafeBytes {
            let url = try? RequestURL.make(parser.head, $0, defaultAuthority: "default:9").get()
            return RequestFields.make(
                parser.head,
                $0,
                hostOverride: url?.hostOverride,
                names: names
            )
        }
    }
}
