import Platform
import Testing

@testable import CacheProxy

/// The addresses that `--proxy-protocol-from` names.
@Suite struct ProxyPeersTests {
    struct Row: Sendable {
        let list: String
        let peer: String?
        let isNamed: Bool
        init(_ list: String, _ peer: String?, _ isNamed: Bool) {
            self.list = list
            self.peer = peer
            self.isNamed = isNamed
        }
    }

    static let rows: [Row] = [
        .init("127.0.0.1", "127.0.0.1", true), .init("127.0.0.1", "127.0.0.2", false),
        .init("127.0.0.1/32", "127.0.0.1", true), .init("10.0.0.0/8", "10.255.255.255", true),
        .init("10.0.0.0/8", "11.0.0.0", false), .init("10.0.0.0/8", "9.255.255.255", false),
        .init("10.0.0.0/9", "10.128.0.0", false), .init("0.0.0.0/0", "255.1.2.3", true),
        .init("0.0.0.0/0", "::1", false), .init("::/0", "::1", true),
        // A listener for both families reports an IPv4 peer as an IPv6 address.
        .init("10.0.0.0/8", "::ffff:10.1.2.3", true), .init("::/0", "::ffff:10.1.2.3", false),
        .init("::ffff:10.0.0.0/104", "10.1.2.3", true), .init("::/0", "10.1.2.3", false),
        .init("2001:db8::/32", "2001:db8:ffff::1", true),
        .init("2001:db8::/32", "2001:db9::", false),
        .init("2001:db8::/65", "2001:db8::7fff:0:0:0", true),
        .init("2001:db8::/65", "2001:db8::8000:0:0:0", false),
        .init("10.0.0.1, ::1,unix", "::1", true), .init("10.0.0.1,::1", "10.0.0.1", true),
        .init("unix", nil, true), .init("127.0.0.1", nil, false), .init("unix", "127.0.0.1", false),
        .init("0.0.0.0/0,::/0", nil, false),
    ]

    @Test(arguments: rows)
    func onlyNamedPeersAreBelieved(_ row: Row) throws {
        let peer = try row.peer.map { try #require(IPAddress($0)) }
        #expect(try ProxyPeers(parsing: row.list).contains(peer) == row.isNamed)
    }

    @Test func addressIsKnownOfAConnectionThatWasReset() throws {
        let (listener, port) = try WireSocket.listening(waiting: 1)
        defer { close(listener) }
        try WireSocket.connected(to: port).abort()
        let accepted = try #require(AcceptedSocket(from: listener))
        defer { close(accepted.descriptor) }
        #expect(accepted.peer?.text == "127.0.0.1")
    }

    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("::FFFF:192.0.2.1", "192.0.2.1"),
        ("2001:DB8:0::1", "2001:db8::1"),
        ("::", "::"), ("0.0.0.0", "0.0.0.0"),
    ])
    func addressHasOneWrittenForm(_ row: (String, String)) {
        #expect(IPAddress(row.0)?.text == row.1)
    }

    @Test(arguments: [
        "", " ", "a.test", "1.2.3", "1.2.3.4.5", "01.2.3.4", "::1%lo", "[::1]", "1.2.3.4:80", ":::",
        "1.2.3.4\0", "12345::", "1.2.3.256", String(repeating: "1", count: 60),
    ])
    func textThatIsNoAddressIsRefused(_ text: String) { #expect(IPAddress(text) == nil) }

    @Test(arguments: [
        ("10.0.0.0/33", "`10.0.0.0/33` is not a network"),
        ("10.0.0.0/", "`10.0.0.0/` is not a network"),
        ("10.0.0.0/+8", "`10.0.0.0/+8` is not a network"), ("::/129", "`::/129` is not a network"),
        ("10.0.0.0/8 x", "`10.0.0.0/8 x` is not a network"), ("1.2.3.4,", "`` is not a network"),
        ("lb.test", "`lb.test` is not a network"), ("Unix", "`Unix` is not a network"),
        ("10.1.2.3/8", "`10.1.2.3/8` has address bits behind its prefix"),
        ("::1/64", "`::1/64` has address bits behind its prefix"),
        (Array(repeating: "::1", count: 257).joined(separator: ","), "the list has 257 networks"),
    ])
    func faultNamesTheNetwork(_ row: (String, String)) {
        #expect {
            try ProxyPeers(parsing: row.0)
        } throws: { ($0 as? ValueFault)?.problem == row.1 }
    }

    @Test func prefixThatIsTooLongIsCorrected() {
        #expect {
            try ProxyPeers(parsing: "10.1.2.3/8")
        } throws: { ($0 as? ValueFault)?.remedy == "10.0.0.0/8" }
    }
}
