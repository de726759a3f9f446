import CacheTestSupport
import Testing

@testable import CacheEngine

/// The normal form of URLs in keys.
@Suite struct TargetURLTests {
    /// The normal form and the scheme; `nil` if the URL is refused.
    static func written(_ url: [UInt8]) -> (text: String, scheme: TargetURL.Scheme)? {
        url.withUnsafeBytes { url in
            // Guard bytes after the promised room detect a write beyond it.
            let room = TargetURL.writtenBytesMax(url.count)
            var target = [UInt8](repeating: 0xEE, count: 3 + room + 8)
            let read = target.withUnsafeMutableBytes { bytes in
                TargetURL(url, writingTo: .init(rebasing: bytes[..<(3 + room)]), at: 3)
            }
            precondition(target[(3 + room)...].allSatisfy { $0 == 0xEE })
            guard let read else { return nil }
            return (String(decoding: target[3..<read.end], as: UTF8.self), read.scheme)
        }
    }

    static func normal(_ url: String) -> String? { written([UInt8](url.utf8))?.text }

    @Test(
        "what RFC 3986 calls equivalent has one form",
        arguments: [
            ("http://example.com/", "http://example.com/"),
            ("HTTP://EXAMPLE.com", "http://example.com/"),
            ("http://example.com:80/a", "http://example.com/a"),
            ("https://example.com:443/a", "https://example.com/a"),
            ("http://example.com:/a", "http://example.com/a"),
            ("http://example.com#top", "http://example.com/"),
            ("http://example.com?q", "http://example.com/?q"),
            ("http://example.com/a#b?c", "http://example.com/a"),
            ("http://[2001:DB8::1]:80/", "http://[2001:db8::1]/"),
            ("http://User@Host/", "http://User@host/"),
            ("http://a:b@h:80/", "http://a:b@h/"),
            ("http://a:b:c@[::1]:81/", "http://a:b:c@[::1]:81/"),
        ]
    )
    func equivalentUrlsHaveOneForm(url: String, normal: String) {
        #expect(Self.normal(url) == normal)
        #expect(Self.normal(normal) == normal, "The form is its own form")
    }

    @Test("a URL in its normal form, which is only copied, reads as one that is not")
    func copiedUrlsReadAsOthersDo() {
        var random = SeededRandom(seed: 11)
        let pieces = [
            "a", "z9", "-", ".", "_", "B", ":", ":80", ":443", ":8080", "@", "[::1]", "/", "/p",
            "?", "?q=1", "#", " ", "%7E", "\u{7F}", "\u{1}", "é", "longer-than-eight-bytes",
        ]
        for _ in 0..<20_000 {
            var rest = "//"
            for _ in 0..<Int.random(in: 0..<7, using: &random) {
                rest += pieces.randomElement(using: &random) ?? ""
            }
            for scheme in ["http:", "https:"] {
                // An uppercase scheme takes the slow path, and so does the rest of the URL.
                #expect(Self.normal(scheme + rest) == Self.normal(scheme.uppercased() + rest))
            }
        }
    }

    @Test(
        "nothing else is made equal",
        arguments: [
            "http://example.com/%7Ea", "http://example.com/%7ea", "http://example.com/a//b",
            "http://example.com/a/../b", "http://example.com/a;p", "http://example.com/?",
            "http://example.com/a?b=1&a=2", "http://example.com:443/", "https://example.com:80/",
            "http://example.com:080/", "http://example.com./", "http://h/A", "http://h/a%2Fb",
            "http://h/a%23b", "http://h/a%3Fb", "ftp://h:80/",
        ]
    )
    func nothingElseIsTouched(url: String) {
        #expect(Self.normal(url) == url)
    }

    @Test(
        "an authority that is none is refused",
        arguments: [
            "http://h::80/", "http://h:8x/", "http://[::1/", "http://[::1]x/", "http://a[b]/",
            "http://a]/", "http://@/", "http://:80/", "http://a@b:c@d:e/", "http://[]]/",
        ]
    )
    func brokenAuthoritiesAreRefused(url: String) {
        #expect(Self.normal(url) == nil)
    }

    @Test("a port that does not exist is refused", arguments: ["http", "HTTP", "https", "ftp"])
    func portsThatDoNotExistAreRefused(scheme: String) {
        for port in ["65536", "70000", "99999999999999999999999999999999"] {
            for host in ["h", "[::1]", "a@h"] {
                #expect(Self.normal("\(scheme)://\(host):\(port)/") == nil)
            }
        }
        let highest = "\(scheme)://h:65535/"
        #expect(Self.normal(highest) == highest.lowercased())
        let zeros = String(repeating: "0", count: 40)
        #expect(Self.normal("\(scheme)://h:\(zeros)8080/") != nil)
    }

    @Test("schemes are told apart")
    func schemesAreToldApart() {
        for (url, scheme) in [
            ("http://h/", TargetURL.Scheme.http), ("hTTps://h/", .https), ("httpx://h/", .other),
            ("a+b-1.c://h/", .other),
        ] {
            #expect(Self.written([UInt8](url.utf8))?.scheme == scheme)
        }
        #expect(Self.normal(String(repeating: "s", count: 33) + "://h/") == nil)
    }

    @Test("random bytes never trap, and what is accepted is its own form")
    func randomBytesNeverTrap() {
        var random = SeededRandom(seed: 1)
        let alphabet = [UInt8]("htps:/@?#[]%.azAZ09 -_\u{0}\r\n\u{7F}".utf8) + [0xFF, 0xC3, 0xA4]
        var accepted = 0
        for round in 0..<100_000 {
            var bytes = round % 2 == 0 ? [] : [UInt8]("http://h".utf8)
            for _ in 0..<Int.random(in: 0..<24, using: &random) {
                bytes.append(alphabet.randomElement(using: &random) ?? 0)
            }
            guard let written = Self.written(bytes) else { continue }
            accepted += 1
            let again = Self.written([UInt8](written.text.utf8))
            if bytes.allSatisfy({ $0 < 0x80 }), again?.text != written.text {
                Issue.record("\(bytes) has two forms")
                return
            }
        }
        #expect(accepted > 1_000)
    }

    @Test("a special byte is seen wherever in a word it stands")
    func specialBytesAreSeenEverywhere() {
        for length in 0..<40 {
            for (byte, isEnd) in [
                (UInt8(ascii: "#"), true), (0x20, false), (0x0A, false), (0x7F, false),
            ] {
                var url = [UInt8]("http://h/".utf8) + [UInt8](repeating: 0x78, count: length)
                let end = url.count
                url.append(byte)
                url += [UInt8]("yyyyyyyyyyyy".utf8)
                let text = Self.written(url)?.text
                #expect(text == (isEnd ? String(decoding: url[..<end], as: UTF8.self) : nil))
            }
        }
    }

    @Test("URLs of every length up to 64 KB keep every byte")
    func longUrlsKeepEveryByte() {
        var random = SeededRandom(seed: 2)
        for count in [0, 1, 7, 8, 9, 100, 1_023, 1_024, 1_025, 8_191, 65_535, 65_536] {
            let path = (0..<count).map { _ in UInt8.random(in: 0x24..<0x7F, using: &random) }
            let url = [UInt8]("http://h/".utf8) + path
            #expect(Self.written(url)?.text == String(decoding: url, as: UTF8.self))
        }
    }
}
