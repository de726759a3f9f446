import CacheEngine
import Testing

@testable import CurlOrigin

@Suite struct RequestTargetTests {
    @Test(arguments: [
        ("http://a", "a", "/"),
        ("HTTP://a:80", "a:80", "/"),
        ("http://a/", "a", "/"),
        ("http://a?q", "a", "/?q"),
        ("http://a/x?y#z", "a", "/x?y"),
        ("http://a#z", "a", "/"),
        ("http://a/../b/./c//d", "a", "/../b/./c//d"),
        ("http://a/%2F..%2f%zz", "a", "/%2F..%2f%zz"),
        ("http://[::1]:8080/x", "[::1]:8080", "/x"),
        ("http://user:secret@a/x", "a", "/x"),
        ("http://a/x@y", "a", "/x@y"),
        ("https://b/é?ü=\"<>", "b", "/é?ü=\"<>"),
        ("http://a\\b", "a", "/\\b"),
        ("https://b\u{FC}cher/", "b\u{FC}cher", "/"),
        ("http://a/\u{338}@b/x", "a", "/\u{338}@b/x"),
        ("http://a/\u{301}x", "a", "/\u{301}x"),
        ("http://a?\u{301}q", "a", "/?\u{301}q"),
        ("http://a/x#\u{301}y", "a", "/x"),
        ("http://a@\u{301}b/x", "\u{301}b", "/x"),
    ])
    func urlIsCutWithoutTouchingTheTarget(url: String, authority: String, target: String) throws {
        let cut = try RequestTarget(url)
        #expect(cut.authority == authority)
        #expect(cut.originForm == target)
        let scheme = url.lowercased().hasPrefix("https") ? "https" : "http"
        #expect(cut.connectionURL == "\(scheme)://\(authority)/")
        #expect(cut.absoluteForm == "\(scheme)://\(authority)\(target)")
    }

    @Test(arguments: [
        "", "a", "/a", "ftp://a/", "file:///etc/passwd", "http:/a", "http://", "http:///x",
        "http://:80/", "http://a/b c", "http://a/b\r\nX: y", "http://a/\u{0}", "http://a b/",
        "javascript://a/", "http://user@/x",
    ])
    func invalidTargetIsRefused(url: String) {
        #expect { try RequestTarget(url) } throws: {
            ($0 as? CacheError)?.code == .requestInvalid
        }
    }

    @Test(arguments: [
        ("ftp://a/", "The URL is not an http or https URL: `ftp://a/`"),
        (
            "http://a/b\r\nX",
            "The URL contains a space or a control character; escape it: `http://a/b\\u{d}\\u{a}X`"
        ),
        ("http://:80/", "The URL has no host: `http://:80/`"),
    ])
    func errorQuotesTheURL(url: String, text: String) {
        #expect(throws: CacheError(.requestInvalid, detail: text)) { try RequestTarget(url) }
    }

    @Test func optionsWithoutAPathAreForTheServer() throws {
        let server = try RequestTarget("http://a:81", method: .options)
        #expect(server.originForm == "*" && server.absoluteForm == "http://a:81")
        #expect(try RequestTarget("http://a/", method: .options).originForm == "/")
        #expect(try RequestTarget("http://a/*", method: .options).originForm == "/*")
    }

    @Test func longTargetPassesWhole() throws {
        let path = "/" + String(repeating: "a", count: 65_536)
        #expect(try RequestTarget("http://a" + path).originForm == path)
        let endless = "http://a/" + String(repeating: "a", count: OriginURL.bytesMax)
        #expect(throws: CacheError.self) { try RequestTarget(endless) }
    }
}
