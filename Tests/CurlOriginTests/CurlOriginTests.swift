import CacheEngine
import CacheProxy
import CacheTestSupport
import Foundation
import Synchronization
import Testing

@testable import CurlOrigin

/// Exchanges of each origin client with a correct origin.
@Suite struct CurlOriginTests {
    private func fetch(
        _ url: String,
        by origin: any ConnectingOrigin
    ) async throws -> (OriginResponse, String) {
        let response = try await origin.fetch(OriginRequest(url: url))
        return (response, try await response.body.collect().text)
    }

    @Test(arguments: OriginKind.allCases)
    func answerArrivesWithStatusFieldsAndBody(kind: OriginKind) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { request, connection in
            connection.respond(
                200,
                [("ETag", "\"1\""), ("Vary", "A"), ("Vary", "B")],
                body: "hello"
            )
        }
        let (response, body) = try await fetch(server.baseURL + "/x", by: origin)
        #expect(response.status == 200)
        #expect(response.fields["etag"] == "\"1\"")
        #expect(response.fields.values("Vary") == ["A", "B"])
        #expect(response.body.count == 5)
        #expect(body == "hello")
    }

    @Test(arguments: OriginKind.allCases)
    func nothingIsSentThatTheRequestDoesNotHold(kind: OriginKind) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { _, connection in connection.respond() }
        _ = try await fetch(server.baseURL + "/x", by: origin)
        let request = try #require(server.requests.first)
        #expect(request.method == "GET")
        #expect(request.version == "HTTP/1.1")
        #expect(request.fields.map(\.name) == ["Host"])
        #expect(request["Host"] == "127.0.0.1:\(server.port)")
    }

    @Test(arguments: OriginKind.allCases)
    func fieldsAreSentAsGiven(kind: OriginKind) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { _, connection in connection.respond() }
        let fields = HeaderFields([
            ("X-Empty", ""), ("Accept", "text/html"), ("User-Agent", "me"), ("x-odd", "a: b; c"),
            ("X-Two", "1"), ("X-Two", "2"), ("Host", "example.org"), ("Connection", "close"),
            ("Transfer-Encoding", "chunked"), ("Content-Length", "9"), ("TE", "trailers"),
        ])
        _ = try await origin.fetch(OriginRequest(url: server.baseURL, fields: fields))
        let request = try #require(server.requests.first)
        let sent = request.fields.map { "\($0.name)=\($0.value)" }.sorted()
        #expect(
            sent == [
                "Accept=text/html", "Host=example.org", "User-Agent=me", "X-Empty=", "X-Two=1",
                "X-Two=2", "x-odd=a: b; c",
            ]
        )
    }

    /// Each field alone, so that only its own name can cause its removal.
    @Test(
        arguments: OriginKind.allCases,
        [
            "Connection", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "TE", "Trailer",
            "Upgrade",
        ]
    )
    func fieldsOfTheConnectionGoNoFurther(kind: OriginKind, name: String) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { _, connection in connection.respond() }
        let fields = HeaderFields([(name, "close"), ("Authorization", "Basic eA==")])
        let response = try await origin.fetch(OriginRequest(url: server.baseURL, fields: fields))
        _ = try await response.body.collect()
        let request = try #require(server.requests.first)
        #expect(request.fields.map(\.name).sorted() == ["Authorization", "Host"])
    }

    /// The cache has selected a variant by what it was given, so the origin must get the same.
    @Test func fieldThatConnectionListsIsSent() async throws {
        let server = try LoopbackServer { _, connection in connection.respond() }
        let fields: HeaderFields = ["Connection": "accept-language", "Accept-Language": "de"]
        _ = try await CurlOrigin().fetch(OriginRequest(url: server.baseURL, fields: fields))
        let request = try #require(server.requests.first)
        #expect(request["Accept-Language"] == "de" && request["Connection"] == nil)
    }

    @Test(arguments: [nil, "user:secret"] as [String?])
    func proxyGetsItsOwnCredentialsOnly(credentials: String?) async throws {
        let server = try LoopbackServer { _, connection in connection.respond() }
        let place = (credentials.map { $0 + "@" } ?? "") + "127.0.0.1:\(server.port)"
        let origin = CurlOrigin(configuration: .init(proxy: "http://" + place))
        let request = OriginRequest(
            url: "http://origin.invalid/x",
            fields: ["Proxy-Authorization": "Basic eA=="]
        )
        #expect(try await origin.fetch(request).status == 200)
        let sent = try #require(server.requests.first)
        #expect(sent.target == "http://origin.invalid/x")
        let values = sent.fields.filter { $0.name == "Proxy-Authorization" }.map(\.value)
        #expect(values == (credentials == nil ? [] : ["Basic dXNlcjpzZWNyZXQ="]))
        let others = sent.fields.map(\.name).filter { $0 != "Proxy-Authorization" }
        #expect(others == ["Host"])
    }

    /// In a child process, because the environment belongs to all tests.
    @Test func proxyIsUsedWhateverTheEnvironmentSays() async {
        await #expect(processExitsWith: .success) {
            setenv("no_proxy", "*", 1)
            let server = try LoopbackServer { _, connection in connection.respond() }
            let origin = CurlOrigin(configuration: .init(proxy: server.baseURL))
            let request = OriginRequest(url: "http://127.0.0.1:\(ClosedPort.number)/x")
            #expect(try await origin.fetch(request).status == 200)
            #expect(server.requests.first?.target == request.url)
        }
    }

    @Test(arguments: [
        (nil, false), ("", false), ("socks5://a:1080", false), ("SOCKS5h://a", false),
        ("a:3128", true), ("http://a", true), ("HTTPS://a", true),
    ])
    func onlyAnHTTPProxyGetsAbsoluteTargets(proxy: String?, isHTTP: Bool) {
        #expect(CurlConfiguration(proxy: proxy).hasHTTPProxy == isHTTP)
    }

    @Test func emptyProxyIsNone() async throws {
        let server = try LoopbackServer { _, connection in connection.respond() }
        let origin = CurlOrigin(configuration: .init(proxy: ""))
        _ = try await origin.fetch(OriginRequest(url: server.baseURL + "/x"))
        #expect(server.requests.first?.target == "/x")
    }

    @Test(
        arguments: OriginKind.allCases,
        [
            "/../a/./b//c", "/%2e%2E/%2F", "/?", "/?a=b?c", "/;x=y", "/%zz%", "/\"<>^`{|}",
            "/a%00b",
        ]
    )
    func targetIsSentByteForByte(kind: OriginKind, target: String) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { _, connection in connection.respond() }
        _ = try await fetch(server.baseURL + target + "#fragment", by: origin)
        #expect(server.requests.first?.target == target)
    }

    @Test(
        arguments: OriginKind.allCases,
        ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "QUERY", "PURGE"]
    )
    func everyMethodIsSentUnderItsName(kind: OriginKind, name: String) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { _, connection in
            connection.respond(200, [("X-Seen", "yes")])
        }
        let request = OriginRequest(method: HTTPMethod(name), url: server.baseURL)
        let response = try await origin.fetch(request)
        #expect(response.fields["X-Seen"] == "yes")
        _ = try await response.body.collect()
        let seen = try #require(server.requests.first)
        #expect(seen.method == name)
        let hasLength = ["POST", "PUT", "PATCH"].contains(name)
        #expect(seen["Content-Length"] == (hasLength ? "0" : nil))
        #expect(seen.fields.count == (hasLength ? 2 : 1))
    }

    @Test(arguments: OriginKind.allCases)
    func headRequestEndsWithItsHead(kind: OriginKind) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        }
        let response = try await origin.fetch(OriginRequest(method: .head, url: server.baseURL))
        #expect(response.fields["Content-Length"] == "1000")
        #expect(try await response.body.collect().isEmpty)
    }

    @Test(arguments: OriginKind.allCases, [599, 999, 299, 418, 304, 204, 500])
    func anyStatusPasses(kind: OriginKind, status: Int) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { _, connection in connection.respond(status) }
        #expect(try await fetch(server.baseURL, by: origin).0.status == status)
    }

    @Test(arguments: OriginKind.allCases)
    func redirectIsAnAnswer(kind: OriginKind) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { _, connection in
            connection.respond(302, [("Location", "/elsewhere")], body: "moved")
        }
        let (response, body) = try await fetch(server.baseURL, by: origin)
        #expect(response.status == 302)
        #expect(body == "moved")
        #expect(server.requestCount == 1)
    }

    @Test(arguments: OriginKind.allCases)
    func encodedContentStaysEncoded(kind: OriginKind) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { _, connection in
            connection.respond(200, [("Content-Encoding", "gzip")], body: "not gzip at all")
        }
        #expect(try await fetch(server.baseURL, by: origin).1 == "not gzip at all")
    }

    @Test(arguments: OriginKind.allCases)
    func connectionIsUsedAgain(kind: OriginKind) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { _, connection in connection.respond(body: "x") }
        for _ in 0..<20 { _ = try await fetch(server.baseURL, by: origin) }
        #expect(server.requestCount == 20)
        #expect(server.connectionCount == 1)
    }

    /// The origin may take what follows on the connection for requests of the same user.
    @Test(
        arguments: OriginKind.allCases,
        ["NTLM TlRMTVNTUAAB", "negotiate YII", "Kerberos YII", "Basic eDp5"]
    )
    func connectionOfOneUserIsNotUsedAgain(kind: OriginKind, credentials: String) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { _, connection in connection.respond(body: "x") }
        let login = OriginRequest(url: server.baseURL, fields: ["Authorization": credentials])
        for number in 1...2 {
            #expect(try await origin.fetch(login).body.collect().text == "x")
            _ = try await fetch(server.baseURL, by: origin)
            let isOfOneUser = !credentials.hasPrefix("Basic")
            #expect(server.connectionCount == (isOfOneUser ? number + 1 : 1))
        }
    }

    @Test(arguments: OriginKind.allCases)
    func chunksAreJoinedAndTrailersLeftOut(kind: OriginKind) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.send("3;ext=1\r\nabc\r\n4\r\ndefg\r\n0\r\nSet-Cookie: a=b\r\nX: y\r\n\r\n")
        }
        let (response, body) = try await fetch(server.baseURL, by: origin)
        #expect(body == "abcdefg")
        // The length of a chunked body is known if the plain client has read the whole body at once.
        #expect(response.body.count == nil || kind == .plain && response.body.count == 7)
        #expect(response.fields["Set-Cookie"] == nil)
        #expect(try await fetch(server.baseURL, by: origin).1 == "abcdefg")
        #expect(server.connectionCount == 1)
    }

    @Test(arguments: OriginKind.allCases)
    func bodyWithoutLengthEndsWithTheConnection(kind: OriginKind) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\n\r\nto the end")
            connection.close()
        }
        #expect(try await fetch(server.baseURL, by: origin).1 == "to the end")
    }

    @Test(arguments: OriginKind.allCases)
    func informationalHeadsAreHandedOn(kind: OriginKind) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n")
            connection.send("HTTP/1.1 102 Processing\r\n\r\n")
            connection.respond(body: "done")
        }
        let seen = Mutex<[String]>([])
        let request = OriginRequest(url: server.baseURL) { status, fields in
            seen.withLock { $0.append("\(status) \(fields["Link"] ?? "-")") }
        }
        let response = try await origin.fetch(request)
        #expect(response.status == 200)
        #expect(response.fields["Link"] == nil)
        #expect(seen.withLock { $0 } == ["103 </style.css>", "102 -"])
    }

    @Test(arguments: OriginKind.allCases)
    func bytesThatAreNotUTF8ArriveUnchanged(kind: OriginKind) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { _, connection in
            let head = [UInt8]("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX: ".utf8)
            connection.send(head + [0xE9, 0xFF] + [0x0D, 0x0A, 0x0D, 0x0A, 0, 0xFF, 0xC0, 0x80])
        }
        let response = try await origin.fetch(OriginRequest(url: server.baseURL))
        var value: [UInt8] = []
        response.fields.forEachLine { name, bytes in
            if name.count == 1 { value = [UInt8](bytes) }
        }
        #expect(value == [0xE9, 0xFF])
        #expect(try await response.body.collect().array == [0, 0xFF, 0xC0, 0x80])
    }

    @Test(arguments: OriginKind.allCases)
    func largestNumberIsNoLimit(kind: OriginKind) async throws {
        let configuration = CurlConfiguration(
            connections: .init(maximumPerHost: .max, maximumTotal: .max, maximumIdle: .max),
            limits: .init(
                maximumFields: .max,
                maximumHeadSize: .bytes(.max),
                maximumInformational: .max,
                maximumWindow: .bytes(.max)
            )
        )
        let server = try LoopbackServer { _, connection in connection.respond(body: "x") }
        #expect(try await fetch(server.baseURL, by: kind.make(configuration)).1 == "x")
    }

    @Test(arguments: OriginKind.allCases)
    func largeBodyArrivesWhole(kind: OriginKind) async throws {
        let origin = kind.make()
        let content = (0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        let server = try LoopbackServer { _, connection in connection.respond(bytes: content) }
        let response = try await origin.fetch(OriginRequest(url: server.baseURL))
        #expect(try await response.body.collect().array == content)
    }

    @Test(arguments: OriginKind.allCases)
    func answersOutliveTheirOrigin(kind: OriginKind) async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
            gate.wait()
            connection.send("half")
        }
        var origin: (any ConnectingOrigin)? = kind.make()
        let response = try await origin?.fetch(OriginRequest(url: server.baseURL))
        origin = nil
        gate.open()
        #expect(try await response?.body.collect().text == "halfhalf")
    }

    @Test(arguments: OriginKind.allCases)
    func connectingSendsNothingAndCloses(kind: OriginKind) async throws {
        let origin = kind.make()
        let server = try LoopbackServer { _, connection in connection.respond() }
        let url = server.baseURL
        for number in 1...3 {
            try await origin.connect(to: url)
            #expect(await eventually { server.connectionCount == number })
        }
        #expect(await eventually { server.openConnectionCount == 0 })
        #expect(server.requestCount == 0)
        server.stop()
        await #expect { try await origin.connect(to: url) } throws: {
            ($0 as? CacheError)?.code == .originUnreachable
        }
    }

    @Test(arguments: OriginKind.allCases, ["CONNECT", "G ET", "", "GET\r\nX: y", "GÉT"])
    func methodThatIsNotATokenIsRefused(kind: OriginKind, name: String) async {
        let origin = kind.make()
        let request = OriginRequest(method: HTTPMethod(name), url: "http://127.0.0.1:1/")
        await #expect { try await origin.fetch(request) } throws: {
            ($0 as? CacheError)?.code == .requestInvalid
        }
    }
}
