import Testing

@testable import HTTPCaching

@Suite("Fields of one connection, RFC 9110 §7.6.1")
struct HopByHopTests {
    private static let connectionFields = [
        "Connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding",
        "Upgrade", "Proxy-Authorization",
    ]

    @Test(
        "None of them is forwarded or stored",
        arguments: [
            HopByHop.Purpose.storing, .forwardingRequest, .forwardingResponse,
        ]
    )
    func stripped(_ purpose: HopByHop.Purpose) {
        let fields = FieldSection(Self.connectionFields.map { ($0, "x") } + [("Host", "h")])
        let kept = HopByHop.strip(fields, for: purpose)
        #expect(kept == FieldSection([("Host", "h")]))
    }

    @Test("They are noticed while the length is read")
    func noticed() {
        for name in Self.connectionFields {
            #expect(ContentLength(in: FieldSection([(name, "x")])).hasConnectionFields)
        }
        let others = FieldSection([("Host", "h"), ("Proxy-Authenticate", "Basic")])
        #expect(!ContentLength(in: others).hasConnectionFields)
    }

    @Test("The challenge of a proxy reaches its client, and is not stored")
    func proxyChallenge() {
        let fields = FieldSection([
            ("Proxy-Authenticate", "Basic"), ("Proxy-Authentication-Info", "x"),
        ])
        #expect(HopByHop.strip(fields, for: .storing).isEmpty)
        #expect(HopByHop.strip(fields, for: .forwardingResponse) == fields)
    }

    @Test("What Connection lists goes, in any case and from any line")
    func listed() {
        let fields = FieldSection([
            ("Connection", "close, X-A"), ("x-a", "1"), ("X-B", "2"), ("connection", "x-b,,"),
            ("X-C", "3"),
        ])
        #expect(HopByHop.strip(fields, for: .forwardingRequest) == FieldSection([("X-C", "3")]))
    }

    @Test("A peer cannot have removed what says who may see a message, or how it is read")
    func protected() {
        let names = [
            "Cache-Control", "Pragma", "Vary", "Age", "Date", "Expires", "ETag", "Last-Modified",
            "Authorization", "Cookie", "Host", "Range", "Content-Length", "Content-Type",
            "Content-Range", "Content-Encoding", "CDN-Cache-Control", "Example-Cache-Control",
            "XY-Cache-Control", "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto",
            "X-Forwarded-Host", "X-Forwarded-By", "x-forwarded-x", "X-Real-IP", "Early-Data",
            "Via", "CDN-Loop",
        ]
        let lines = names.map { ($0, "x") }
        let fields = FieldSection([("Connection", names.joined(separator: ", "))] + lines)
        #expect(HopByHop.strip(fields, for: .forwardingResponse) == FieldSection(lines))
    }

    /// The Kelvin sign becomes a `k` in lower case.
    @Test func listedNameThatIsNoTokenNamesNoField() {
        let fields = FieldSection([("Cookie", "a=1"), ("X-Forwarded-Key", "b")])
        let list = FieldSection([("Connection", "Coo\u{212A}ie, X-Forwarded-\u{212A}ey")])
        var both = list
        fields.withUnsafeBytes { both.append(trusted: $0) }
        #expect(HopByHop.strip(both, for: .forwardingRequest) == fields)
    }
}
