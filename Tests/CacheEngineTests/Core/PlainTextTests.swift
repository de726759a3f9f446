import CacheTestSupport
import Testing

@testable import CacheEngine

@Suite struct PlainTextTests {
    @Test(arguments: [
        ("", ""), ("naïve 🙂", "naïve 🙂"), ("a\r\nb\t", "a\\u{d}\\u{a}b\\u{9}"),
        ("\u{1B}[31m", "\\u{1b}[31m"), ("a\u{202E}b\u{2028}", "a\\u{202e}b\\u{2028}"),
    ])
    func controlsAreEscaped(text: String, escaped: String) {
        #expect(PlainText.escaped(text) == escaped)
        #expect(PlainText.excerpt(text) == escaped)
        #expect([UInt8](text.utf8).withUnsafeBytes { PlainText.excerpt($0) } == escaped)
    }

    @Test(arguments: ["a", "ä", "🙂"])
    func excerptIsBounded(letter: String) {
        let most = String(repeating: letter, count: PlainText.excerptScalarsMax)
        for (text, excerpt) in [(most, most), (most + letter, most + "…")] {
            #expect(PlainText.excerpt(text) == excerpt)
            #expect([UInt8](text.utf8).withUnsafeBytes { PlainText.excerpt($0) } == excerpt)
        }
    }

    /// A `Character` may have any number of scalars, so the bound counts scalars.
    @Test func longCharacterIsCut() {
        let text = "a" + String(repeating: "\u{301}", count: 100_000)
        #expect(text.count == 1)
        let excerpt = PlainText.excerpt(text)
        #expect(excerpt.unicodeScalars.count == PlainText.excerptScalarsMax + 1)
    }

    @Test func bytesThatAreNoTextAreReplaced() {
        let bytes: [UInt8] = [0x61, 0xFF, 0x00, 0x62]
        #expect(bytes.withUnsafeBytes { PlainText.excerpt($0) } == "a\u{FFFD}\\u{0}b")
    }

    /// A combining mark joins the sign before it, which is then no question mark.
    @Test(arguments: [
        ("http://me:secret@a.test/b@c?secret", "http://a.test/b@c"),
        ("http://me:sec@ret@a.test", "http://a.test"),
        ("http://me:secret@a.test\\b", "http://a.test\\b"),
        ("http://a.test/b?\u{301}secret", "http://a.test/b"),
        ("http://a.test:80/", "http://a.test:80/"),
        ("http://a.test#\u{301}secret@", "http://a.test"), ("/b@c", "/b@c"),
        ("//me:secret@a", "//a"),
        ("me:secret@a.test/b", "a.test/b"), ("http:/b@c", "http:/b@c"), ("", ""), ("?secret", ""),
    ])
    func secretsOfAURLAreNotQuoted(url: String, quoted: String) {
        #expect(PlainText.excerpt(url: url) == quoted)
        #expect(CacheRequest(url: url).urlWithoutSecrets == quoted)
    }

    @Test(arguments: ["http://me:secret@:80/?secret", "http://me:secret@a.test/b c?secret"])
    func errorOfAnInvalidURLTellsNoSecret(url: String) async throws {
        let stage = try await Stage()
        let error = await #expect(throws: CacheError.self) {
            try await stage.cache.respond(to: CacheRequest(url: url))
        }
        let text = "\(try #require(error))"
        #expect(text.contains("`http://") && !text.contains("secret"), "\(text)")
        await stage.end()
    }
}
