import CacheEngine
import NIOBridge
import Testing

/// A gateway appends a client's path to its upstream, so the upstream is a server alone.
@Suite struct UpstreamTests {
    @Test(arguments: [
        ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
        ("http://127.0.0.1:3000/", "http://127.0.0.1:3000"),
        ("https://app_1.test", "https://app_1.test"), ("HTTP://App.test/", "HTTP://App.test"),
        ("http://[::1]", "http://[::1]"), ("http://[::1]:65535/", "http://[::1]:65535"),
    ])
    func serverIsAnUpstream(text: String, description: String) throws {
        #expect(try "\(Upstream(text))" == description)
    }

    @Test(arguments: [
        "", "/", "127.0.0.1:3000", "localhost", "//app.test", "http:app.test", "http:/app.test",
        "ftp://app.test", "http://", "http:///", "http://:80", "http://app.test//",
        "http://app.test/api", "http://app.test/api/", "http://app.test?", "http://app.test?a=b",
        "http://app.test#a", "http://user@app.test", "http://app.test:", "http://app.test:0",
        "http://app.test:65536", "http://app.test:+80", "http://app.test:80:80",
        "http://app.test:http", "http://a pp.test", "http://app.test\\a", "http://b\u{FC}cher.test",
        "http://[::1", "http://[]", "http://[::1]80", "http://::1", "http://[[::1]]",
        "http://app.test/\u{301}",
    ])
    func anythingElseIsNone(text: String) throws {
        let error = #expect(throws: CacheError.self) { try Upstream(text) }
        #expect(error?.code == .configurationInvalid)
    }

    @Test func errorNamesTheUpstreamWithoutItsSecrets() throws {
        let error = #expect(throws: CacheError.self) { try Upstream("http://me:secret@app.test/a") }
        let text = """
            The upstream `http://app.test/a` is invalid; \
            give http:// or https:// with a host and perhaps a port, and no path
            """
        #expect(error?.detail == text)
    }
}
