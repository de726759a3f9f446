import CacheEngine
import GatewayRules
import Testing

/// The changes that adapters make to messages, as far as they can be tested without a server.
@Suite struct GatewayRulesTests {
    private func forwarded(_ fields: HeaderFields) -> [String] {
        fields.forwarded(by: "gate").pairs.map { "\($0.name): \($0.value)" }
    }

    @Test func connectionFieldsAreNotForwarded() {
        let fields: HeaderFields = [
            "Host": "client.example", "Connection": "close, X-Hop", "X-Hop": "1", "TE": "trailers",
            "Content-Length": "5", "Transfer-Encoding": "chunked", "Expect": "100-continue",
            "Proxy-Authorization": "Basic x", "Accept": "*/*",
        ]
        #expect(forwarded(fields) == ["Accept: */*", "Via: 1.1 gate"])
    }

    @Test func aClientCannotHaveWhatMattersRemoved() {
        let fields: HeaderFields = [
            "Connection": "Authorization,cache-control , Cookie", "Authorization": "Basic x",
            "Cache-Control": "no-store", "Cookie": "a=1",
        ]
        #expect(
            forwarded(fields) == [
                "Authorization: Basic x", "Cache-Control: no-store", "Cookie: a=1", "Via: 1.1 gate",
            ]
        )
    }

    @Test(arguments: [
        "Cache-Control", "CDN-Cache-Control", "Pragma", "Vary", "Age", "Date", "Expires", "ETag",
        "Last-Modified", "Content-Type", "Content-Encoding", "Content-Range", "Range",
        "Authorization", "Cookie", "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto",
        "X-Forwarded-Host", "X-Forwarded-Client-Cert", "X-Real-IP", "Early-Data", "Via", "CDN-Loop",
    ])
    func fieldThatConnectionCannotRemoveIsForwarded(name: String) {
        for listed in [name, name.lowercased(), " x-other ,\t\(name.uppercased())"] {
            let fields: HeaderFields = ["Connection": listed, name: "x", "X-Other": "y"]
            #expect(forwarded(fields).contains("\(name): x"), "\(listed)")
        }
    }

    @Test func namesThatAnOriginTakesForOthersAreNotForwarded() {
        let fields: HeaderFields = ["Accept_Language": "fr", "X.Y": "1", "X-1": "2"]
        #expect(forwarded(fields) == ["X-1: 2", "Via: 1.1 gate"])
    }

    @Test func cookiesInSeveralLinesBecomeOne() {
        let fields = HeaderFields([("Cookie", "a=1"), ("Cookie", "b=2")])
        #expect(forwarded(fields) == ["Cookie: a=1; b=2", "Via: 1.1 gate"])
    }

    @Test func aSecondGatewayIsNamedBehindTheFirst() {
        #expect(forwarded(["Via": "1.0 a"]) == ["Via: 1.0 a", "Via: 1.1 gate"])
    }

    @Test(arguments: [
        ("app.test", "app.test"), ("APP.Test:80", "app.test"), ("app.test:", "app.test"),
        ("app.test:8080", "app.test:8080"), ("[::1]:80", "[::1]"), ("[::80]", "[::80]"),
        ("app_1.test", "app_1.test"),
    ])
    func hostHasOneForm(host: String, authority: String) {
        #expect(HeaderFields([("host", host)]).hostAuthority == authority)
    }

    @Test(arguments: [
        [], [""], [":80"], [":"], ["a", "a"], ["app.test/news#"], ["app.test?x"], ["app.test#"],
        ["user@app.test"], ["app.test\\x"], ["app test"], ["b\u{FC}cher.test"],
        ["app.test/\u{301}news"], ["app.test:80:80"], ["app.test::"], ["app.test::80"],
    ])
    func hostThatCouldNameAnotherURLIsNone(hosts: [String]) {
        #expect(HeaderFields(hosts.map { ("Host", $0) }).hostAuthority == nil)
    }

    @Test(arguments: [
        (CacheError.Code.requestInvalid, 400), (.shutDown, 503), (.originTimedOut, 504),
        (.deadlineExceeded, 504), (.notCached, 504), (.originFailed, 502), (.originMisbehaved, 502),
    ])
    func failuresHaveAStatus(code: CacheError.Code, status: Int) {
        #expect(CacheError(code, detail: "").gatewayStatus == status)
    }
}
