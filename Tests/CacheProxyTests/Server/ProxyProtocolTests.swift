import CacheEngine
import Foundation
import Platform
import Synchronization
import Testing

@testable import CacheProxy

/// PROXY headers over real sockets.
@Suite struct ProxyProtocolTests {
    static let get = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
    static let line = "PROXY TCP4 192.0.2.9 10.0.0.1 5 80\r\n"

    /// The lines that a server reports.
    final class Reports: Sendable {
        let lines = Mutex<[String]>([])
        var all: [String] { lines.withLock { $0 } }
        func add(_ line: String) { lines.withLock { $0.append(line) } }
    }

    /// A responder that answers with the URL and the fields about the client.
    static let echo = ScriptedResponder { request in
        let names = ["X-Forwarded-For", "X-Forwarded-Proto", "Forwarded"]
        let told = names.map { request.fields[$0] ?? "-" }
        return .text(([request.url] + told).joined(separator: " | "))
    }

    static func withPeers(
        _ peers: String?,
        configure: (inout ServerConfiguration) -> Void = { _ in },
        _ body: (ProxyServer, Reports) async throws -> Void
    ) async throws {
        let peers = try peers.map { try ProxyPeers(parsing: $0) }
        let reports = Reports()
        try await withServer(
            echo,
            configure: {
                $0.proxyPeers = peers
                $0.forwarded = .replace
                configure(&$0)
            },
            report: { reports.add($0) }
        ) { try await body($0, reports) }
    }

    static func count(_ counter: WorkerCounters.Counter, _ server: ProxyServer) -> Int {
        server.counters.reduce(0) { $0 + $1[counter] }
    }

    struct Row: Sendable {
        let header: [UInt8]
        let client: String
        let scheme: String
        /// The client in `Forwarded`.
        let node: String

        init(_ header: [UInt8], _ client: String, _ scheme: String, node: String? = nil) {
            self.header = header
            self.client = client
            self.scheme = scheme
            self.node = node ?? client
        }
    }

    static let rows: [Row] = [
        Row(Array(line.utf8), "192.0.2.9", "http"),
        Row(Array("PROXY TCP4 192.0.2.9 10.0.0.1 5 443\r\n".utf8), "192.0.2.9", "https"),
        Row(Array("PROXY UNKNOWN\r\n".utf8), "127.0.0.1", "http"),
        Row(ProxyHeaderTests.binary(0x20, 0, []), "127.0.0.1", "http"),
        Row(ProxyHeaderTests.binary(0x21, 0x11, ProxyHeaderTests.four), "192.0.2.1", "http"),
        Row(
            ProxyHeaderTests.binary(0x21, 0x21, ProxyHeaderTests.six + ProxyHeaderTests.secured),
            "2001:db8::1",
            "https",
            node: "\"[2001:db8::1]\""
        ),
        Row(
            ProxyHeaderTests.binary(0x21, 0x31, ProxyHeaderTests.unix + ProxyHeaderTests.secured),
            "-",
            "https",
            node: "unknown"
        ),
    ]

    @Test(arguments: rows)
    func clientOfTheHeaderIsLoggedForwardedAndInTheKey(_ row: Row) async throws {
        let log = NSTemporaryDirectory() + "cache-proxy-log-\(UUID().uuidString)"
        defer { ConfigurationReaderTests.remove(log) }
        try await Self.withPeers("127.0.0.1", configure: { $0.accessLog = log }) {
            server,
            reports async throws in
            let client = try WireClient(server.port)
            try await onThread { try client.socket.write(row.header + Array(Self.get.utf8)) }
            let wanted =
                "\(row.scheme)://x/a | \(row.client) | \(row.scheme) | "
                + "for=\(row.node);host=x;proto=\(row.scheme)"
            #expect(try await client.response().text == wanted)
            // The header stands once, in front of the first request.
            #expect(try await client.exchange(Self.get).text == wanted)
            #expect(reports.all.isEmpty)
        }
        let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
        #expect(lines.count == 2)
        for line in lines { #expect(line.hasPrefix("\(row.client) - - ["), "\(line)") }
    }

    @Test func headerMayComeInPieces() async throws {
        try await Self.withPeers("127.0.0.1") { server, _ async throws in
            for header in [Self.rows[0].header, Self.rows[5].header] {
                let client = try WireClient(server.port)
                for byte in header + Array(Self.get.utf8) {
                    try await onThread { try client.socket.write([byte]) }
                }
                #expect(try await client.response().status == 200)
            }
        }
    }

    @Test func pipelineBehindTheHeaderIsAnswered() async throws {
        try await Self.withPeers("127.0.0.1") { server, _ async throws in
            let client = try WireClient(server.port)
            try await client.send(Self.line + Self.get + Self.get + "GET /b HTTP/1.1\r\n")
            for _ in 0..<2 { #expect(try await client.response().text.hasPrefix("http://x/a ")) }
            #expect(try await client.exchange("Host: x\r\n\r\n").text.hasPrefix("http://x/b "))
        }
    }

    @Test func schemeOfTheConnectionReplacesTheClaimOfTheTarget() async throws {
        try await Self.withPeers("127.0.0.1") { server, _ async throws in
            let client = try WireClient(server.port)
            let request = "GET https://x/a HTTP/1.1\r\nHost: x\r\n\r\n"
            let text = try await client.exchange(Self.line + request).text
            #expect(text.hasPrefix("http://x/a | 192.0.2.9 | http |"))
        }
    }

    // MARK: Refusing

    @Test func peerThatIsNotNamedIsRefusedWithOneLine() async throws {
        try await Self.withPeers("10.0.0.0/8,unix") { server, reports async throws in
            for _ in 0..<5 {
                let client = try WireClient(server.port)
                // The connection may end while the client still writes.
                try? await client.send(Self.line + "GET /a HTTP/1.0\r\nHost: x\r\n\r\n")
                #expect(try await client.isClosed())
            }
            #expect(Self.count(.peersRefused, server) == 5)
            #expect(Self.count(.connections, server) == 0)
            #expect(reports.all == [ProxyHeaderReport.refused("127.0.0.1")])
        }
    }

    @Test(arguments: [
        (get, ProxyHeaderFault.missing), ("PROXY TCP4 1.2.3.4\r\n" + get, .lineMalformed),
        ("PROXY UNKNOWN " + String(repeating: "x", count: 200), .lineTooLong),
        ("\r\n\r\n\0\r\nQUIT\n\u{11}\u{11}\0\0", .versionUnknown),
        ("\r\n\r\n\0\r\nQUIT\n\u{21}\u{11}\0\u{1}", .addressMissing),
    ])
    func invalidHeaderEndsItsConnectionWithOneLine(_ row: (String, ProxyHeaderFault)) async throws {
        try await Self.withPeers("127.0.0.1") { server, reports async throws in
            for _ in 0..<3 {
                let client = try WireClient(server.port)
                try? await client.send(row.0)
                #expect(try await client.isClosed())
            }
            #expect(Self.count(.headerFaults, server) == 3)
            #expect(Self.count(.requests, server) == 0)
            #expect(reports.all == [ProxyHeaderReport.closed("127.0.0.1", row.1)])
        }
    }

    @Test(arguments: ["", "PROXY TCP4"])
    func lateHeaderEndsItsConnection(_ part: String) async throws {
        try await Self.withPeers("127.0.0.1", configure: { $0.timeouts.head = .milliseconds(50) }) {
            server,
            reports async throws in
            let client = try WireClient(server.port)
            if !part.isEmpty { try await client.send(part) }
            #expect(try await client.isClosed())
            #expect(reports.all == [ProxyHeaderReport.closed("127.0.0.1", .late)])
            #expect(Self.count(.headerFaults, server) == 1)
        }
    }

    @Test func headerThatBreaksOffIsReportedAndAProbeOfThePortIsNot() async throws {
        try await Self.withPeers("127.0.0.1") { server, reports async throws in
            for (part, faults) in [("", 0), ("PROXY TCP4", 1)] {
                let client = try WireClient(server.port)
                if !part.isEmpty { try await client.send(part) }
                client.socket.endOutput()
                #expect(try await client.isClosed())
                #expect(Self.count(.headerFaults, server) == faults)
                #expect(reports.all.count == faults)
            }
            #expect(reports.all == [ProxyHeaderReport.closed("127.0.0.1", .cut)])
        }
    }

    @Test func headerIsNoRequestWhereNoPeerSendsOne() async throws {
        try await Self.withPeers(nil) { server, reports async throws in
            let client = try WireClient(server.port)
            #expect(try await client.exchange(Self.line + Self.get).status == 400)
            #expect(reports.all.isEmpty)
        }
    }

    // MARK: Other listeners, and the whole proxy

    @Test(arguments: [("unix", true), ("127.0.0.1", false)])
    func peersOfAUnixSocketAreNamedByTheirOwnWord(_ row: (String, Bool)) async throws {
        let path = NSTemporaryDirectory() + "cache-proxy-\(UUID().uuidString.prefix(8))"
        try await Self.withPeers(row.0, configure: { $0.address = .unix(path: path) }) {
            server,
            reports async throws in
            let socket = try #require(WireSocket.connected(toPath: path))
            try? await onThread { try socket.write(Self.line + Self.get) }
            let answer = try await onThread { try? socket.read(through: "proto=http") }
            #expect((answer != nil) == row.1)
            #expect(reports.all == (row.1 ? [] : [ProxyHeaderReport.refused("a unix socket")]))
        }
    }

    @Test func schemeOfTheHeaderIsPartOfTheKey() async throws {
        let script: WireOrigin.Script = { request, socket in
            let scheme = request["X-Forwarded-Proto"] ?? "-"
            return try socket.answer(200, ["Cache-Control: max-age=60"], scheme)
        }
        let options = ["--proxy-protocol-from", "127.0.0.0/8", "--forwarded", "replace"]
        try await OptionTests.withOptions(options, script) { proxy, origin async throws in
            for isHit in [false, true] {
                for row in Self.rows[0...1] {
                    let client = try proxy.client()
                    try await onThread { try client.socket.write(row.header) }
                    let response = try await client.exchange(Self.get)
                    #expect(response.text == row.scheme && response.isHit == isHit)
                }
            }
            #expect(origin.count == 2)
        }
    }
}

extension ProxyProtocolTests {
    static let peerChanges: [(String?, String?)] = [
        ("127.0.0.0/8", "unix"), ("127.0.0.0/8", "10.0.0.0/8"), ("127.0.0.0/8", nil),
        (nil, "unix"),
    ]

    /// The peers belong to the listener: those of the next one would refuse every client of it.
    @Test(arguments: peerChanges)
    func peersOfAListenerThatNeedsARestartWaitForIt(_ row: (String?, String?)) async throws {
        let header = row.0 == nil ? "" : Self.line
        let origin: WireOrigin.Script = { _, socket in try socket.answer(200, [], "x") }
        var settings: ProxyConfiguration?
        let configure = { (configuration: inout ProxyConfiguration) in
            configuration.proxyPeers = row.0.flatMap { try? ProxyPeers(parsing: $0) }
            settings = configuration
        }
        try await withProxy(origin, configure: configure) { proxy, _ async throws in
            var new = try #require(settings)
            new.listen = .unix(path: "/run/proxy.sock")
            new.proxyPeers = try row.1.map { try ProxyPeers(parsing: $0) }
            for _ in 0..<2 {
                let left = try proxy.service.reload(new)
                #expect(left.contains("listen") && left.contains("proxy-protocol-from"))
                let client = try proxy.client()
                #expect(try await client.exchange(header + Self.get).status == 200)
            }
        }
    }
}
