import CacheEngine
import Testing

@testable import CacheProxy

@Suite struct UpstreamURLTests {
    struct Row: Sendable {
        let url: String
        let host: String
        let port: Int
        let target: String
        init(_ url: String, _ host: String, _ port: Int, _ target: String) {
            self.url = url
            self.host = host
            self.port = port
            self.target = target
        }
    }

    @Test(arguments: [
        Row("http://a", "a", 80, ""),
        Row("HTTP://a:80", "a", 80, ""),
        Row("https://a:80/", "a", 80, "/"),
        Row("HttpS://a", "a", 443, ""),
        Row("http://a:/x", "a", 80, "/x"),
        Row("http://a:00081/x", "a", 81, "/x"),
        Row("http://a:65535?q", "a", 65_535, "?q"),
        Row("http://a/x?y#z", "a", 80, "/x?y"),
        Row("http://[::1]:8080/x", "[::1]", 8080, "/x"),
        Row("http://[::1]", "[::1]", 80, ""),
        Row("http://[::1]:", "[::1]", 80, ""),
        Row("http://user:secret@a:1/x@y", "a", 1, "/x@y"),
        Row("http://a@b@c", "c", 80, ""),
        Row("http://a\\b", "a", 80, "\\b"),
        Row("http://a#\u{301}@b/", "a", 80, ""),
    ])
    func urlIsSplitIntoItsParts(_ row: Row) throws {
        let url = try UpstreamURL(row.url)
        let bytes = Array(row.url.utf8)
        #expect(String(decoding: bytes[url.host], as: UTF8.self) == row.host)
        #expect(String(decoding: bytes[url.target], as: UTF8.self) == row.target)
        #expect(url.port == row.port)
        #expect(url.isSecure == row.url.lowercased().hasPrefix("https"))
        #expect(url.isDefaultPort == (row.port == (url.isSecure ? 443 : 80)))
    }

    @Test(arguments: [
        ("", "The URL is not an http or https URL"), ("a", "The URL is not an http or https URL"),
        ("/a", "The URL is not an http or https URL"),
        ("ftp://a/", "The URL is not an http or https URL"),
        ("http:/a", "The URL is not an http or https URL"),
        ("javascript://a/", "The URL is not an http or https URL"),
        ("http:", "The URL is not an http or https URL"),
        ("http://", "The URL has no host"), ("http:///x", "The URL has no host"),
        ("http://:80/", "The URL has no host"), ("http://user@/x", "The URL has no host"),
        ("http://#a", "The URL has no host"),
        ("http://a/b c", "The URL contains a space or a control character"),
        ("http://a/b\r\nX: y", "The URL contains a space or a control character"),
        ("http://a/\u{0}", "The URL contains a space or a control character"),
        ("http://a b/", "The URL contains a space or a control character"),
        ("http://a:b/", "The URL's host or port is invalid"),
        ("http://a:0/", "The URL's host or port is invalid"),
        ("http://a:65536/", "The URL's host or port is invalid"),
        ("http://a:-1/", "The URL's host or port is invalid"),
        ("http://a:1:2/", "The URL's host or port is invalid"),
        ("http://a\"/", "The URL's host or port is invalid"),
        ("http://ä/", "The URL's host or port is invalid"),
        ("http://[::1/", "The URL's host or port is invalid"),
        ("http://[::1]x/", "The URL's host or port is invalid"),
        ("http://[::1]xy/", "The URL's host or port is invalid"),
    ])
    func urlThatNamesNoHostIsRefused(url: String, detail: String) {
        #expect { try UpstreamURL(url) } throws: { Self.isInvalid($0, detail) }
    }

    @Test func longURLPassesUpToItsLimit() throws {
        let path = "/" + String(repeating: "a", count: 65_536)
        #expect(try UpstreamURL("http://a" + path).target.count == path.utf8.count)
        let endless = "http://a/" + String(repeating: "a", count: 1 << 20)
        #expect { try UpstreamURL(endless) } throws: {
            Self.isInvalid($0, "The URL has more than 1048576 bytes")
        }
    }

    /// Whether the error says that the request is invalid, and why.
    private static func isInvalid(_ error: any Error, _ reason: String) -> Bool {
        guard let error = error as? CacheError else { return false }
        return error.code == .requestInvalid && error.detail.hasPrefix(reason)
    }
}
