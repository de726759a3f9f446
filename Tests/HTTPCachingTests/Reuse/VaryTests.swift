import CacheTestSupport
import Testing

@testable import HTTPCaching

@Suite("Vary and variant keys, RFC 9111 §4.1")
struct VaryTests {
    private static func read(_ values: String...) -> Vary.Reading {
        Vary.read(FieldSection(values.map { ("Vary", $0) }))
    }

    private static func key(
        _ names: [String],
        _ request: Lines,
        _ rules: VariantRules = .standard
    ) -> VariantKey? {
        Vary(names).map { VariantKey($0, request: FieldSection(request), rules: rules) }
    }

    @Test("RFC 9110 §12.5.5: names are sorted, in lower case, each once")
    func names() {
        #expect(Self.read("Foo, bar", "BAR,foo ,baz") == .selecting(Vary(["bar", "baz", "foo"])!))
        #expect(Self.read() == .absent)
        #expect(Self.read("", ", ,") == .absent)
    }

    @Test("§4.1: a star, or what is no name, never matches")
    func everything() {
        for values in [["*"], ["*, *"], ["", "*"], ["foo, *"], ["*, foo"], ["a b"], ["\"foo\""]] {
            let fields = FieldSection(values.map { ("Vary", $0) })
            #expect(Vary.read(fields) == .everything, "\(values)")
        }
    }

    @Test("The list is bounded")
    func bounded() {
        let names = (0..<17).map { "f\($0)" }
        #expect(Self.read(names.joined(separator: ",")) == .tooMany)
        #expect(Self.read(names.dropLast().joined(separator: ",")) != .tooMany)
        #expect(Vary(names) == nil)
        #expect(Self.read(String(repeating: "x", count: 256)) == .everything)
    }

    @Test("Vary survives its bytes, and nothing else is read as one")
    func bytes() throws {
        let vary = try #require(Vary(["accept-encoding", "x"]))
        var bytes: [UInt8] = []
        vary.encode(to: &bytes)
        #expect(bytes == [2, 15] + Array("accept-encoding".utf8) + [1] + Array("x".utf8))
        func decoded(_ bytes: [UInt8]) -> Vary? { bytes.withUnsafeBytes { Vary(decoding: $0) } }
        #expect(decoded(bytes) == vary)
        for count in 0..<bytes.count { #expect(decoded(Array(bytes.prefix(count))) == nil) }
        #expect(decoded(bytes + [0]) == nil)
        #expect(decoded([2, 1, 0x62, 1, 0x61]) == nil)
        #expect(decoded([2, 1, 0x61, 1, 0x61]) == nil)
        #expect(decoded([1, 1, 0x41]) == nil)
        #expect(decoded([1, 1, 0x2A]) == nil)
        #expect(decoded([1, 0]) == nil)
        #expect(decoded([0]) != nil)
    }

    @Test(
        "§4.1: requests that mean the same have the same key",
        arguments: [
            Row("lines combine", ("foo", ["1, 2"]), ["1", "2"]),
            Row("whitespace in a list", ("foo", ["1,2"]), [" 1, 2 "]),
            Row("whitespace in a known list", ("accept", ["a/b, */*;q=0.1"]), ["a/b ,*/*;q=0.1"]),
            Row("lines of a known list", ("accept", ["a/b, c/d"]), ["a/b", "c/d"]),
            Row("order of languages", ("accept-language", ["en, de"]), ["de, en"]),
            Row("case of languages", ("accept-language", ["en, de"]), ["eN, De"]),
            Row("space around languages", ("accept-language", ["en, de"]), [" en ,   de"]),
            Row("order of codings", ("accept-encoding", ["gzip, br"]), ["br,gzip"]),
            Row("weight 1", ("accept-encoding", ["gzip;q=1, br;q=1.000"]), ["br, gzip"]),
            Row("space in weights", ("accept-encoding", ["gzip;q=0.5"]), ["gzip ; q=0.50"]),
            Row("names in any case", ("FOO", ["1"]), ["1"]),
        ] as [Row<(String, [String]), [String]>]
    )
    func sameKey(_ row: Row<(String, [String]), [String]>) throws {
        let (name, first) = row.input
        let one = try #require(Self.key([name], first.map { (name, $0) }))
        let other = Self.key([name], row.expected.map { (name.uppercased(), $0) })
        #expect(one == other)
    }

    @Test(
        "§4.1: requests that may mean something else have another key",
        arguments: [
            Row("other value", ("foo", ["1"]), ["2"]),
            Row("absent", ("foo", ["1"]), []),
            Row("absent is not empty", ("foo", [""]), []),
            Row("order in an unknown list", ("foo", ["1, 2"]), ["2, 1"]),
            Row("case in an unknown list", ("foo", ["a"]), ["A"]),
            Row("space inside a member", ("foo", ["1 2"]), ["12"]),
            Row("quotes keep a comma", ("foo", ["\"1, 2\""]), ["1, 2"]),
            Row("a quote over two lines", ("foo", ["\"a", "b\""]), ["\"a,b\""]),
            Row("comma in what is no list", ("user-agent", ["a, b"]), ["a,b"]),
            Row("comma after the value", ("rsc", ["1"]), ["1,"]),
            Row("comma before the value", ("rsc", ["1"]), [",1"]),
            Row("an empty line", ("rsc", ["1"]), ["1", ""]),
            Row("empty members", ("foo", ["1,2"]), ["1,,2"]),
            Row("empty members of a known list", ("accept", ["a/b"]), ["a/b,"]),
            Row("an empty line of a known list", ("accept", ["a/b"]), ["", "a/b"]),
            Row("empty members of languages", ("accept-language", ["de"]), [",de"]),
            Row("empty members of codings", ("accept-encoding", ["br, gzip"]), ["br,,gzip"]),
            Row("whitespace in a URL", ("next-url", ["/a,b"]), ["/a, b"]),
            Row("lines of a URL", ("next-url", ["/a,b"]), ["/a", "b"]),
            Row("whitespace in JSON", ("foo", ["[1,2]"]), ["[1, 2]"]),
            Row("whitespace of a date", ("foo", ["Sun, 06 Nov"]), ["Sun,06 Nov"]),
            Row("lines of which one is no token", ("foo", ["1,2", "/"]), ["1", "2", "/"]),
            Row("weights", ("accept-encoding", ["gzip, br;q=0.5"]), ["gzip;q=0.5, br"]),
            Row("a weight that is none", ("accept-encoding", ["gzip;q=500"]), ["gzip;q=0.5"]),
            Row("identity refused", ("accept-encoding", ["gzip"]), ["gzip, identity;q=0"]),
            Row("another parameter", ("accept-language", ["en;x=1"]), ["en"]),
        ] as [Row<(String, [String]), [String]>]
    )
    func otherKey(_ row: Row<(String, [String]), [String]>) throws {
        let (name, first) = row.input
        let one = try #require(Self.key([name], first.map { (name, $0) }))
        let other = try #require(Self.key([name], row.expected.map { (name, $0) }))
        #expect(one != other)
    }

    @Test("A form of comparison finds no variant that was stored under another")
    func formsAreKeptApart() {
        let forms: [FieldNormalization] = [
            .verbatim, .list, .tokens, .weighted, .best(of: ["br"]),
        ]
        let keys = forms.map { form in
            var rules = VariantRules()
            rules.overrides["foo"] = form
            return Self.key(["foo"], [("Foo", "br")], rules)
        }
        #expect(Set(keys).count == forms.count)
    }

    @Test("Only selecting fields count, in whatever order they come")
    func onlySelectingFields() {
        let one = Self.key(["foo", "bar"], [("Foo", "1"), ("Bar", "2"), ("Other", "3")])
        let other = Self.key(["bar", "foo"], [("bar", "2"), ("baz", "9"), ("foo", "1")])
        #expect(one == other)
        #expect(one != Self.key(["foo"], [("Foo", "1"), ("Bar", "2")]))
    }

    @Test("Parts that concatenate alike do not collide")
    func noCollisions() {
        #expect(
            Self.key(["a", "b"], [("a", "1"), ("b", "23")])
                != Self.key(["a", "b"], [("a", "12"), ("b", "3")])
        )
        #expect(Self.key(["a", "bc"], [("a", "")]) != Self.key(["ab", "c"], [("ab", "")]))
        #expect(Self.key(["a", "b"], [("a", "x")]) != Self.key(["a", "b"], [("b", "x")]))
    }

    @Test("A rule may fold what an origin treats alike")
    func bestOf() {
        var rules = VariantRules()
        rules.overrides["accept-encoding"] = .best(of: ["br", "gzip"])
        func key(_ value: String?) -> VariantKey? {
            Self.key(["accept-encoding"], value.map { [("Accept-Encoding", $0)] } ?? [], rules)
        }
        #expect(key("gzip, deflate, br, zstd") == key("br"))
        #expect(key("gzip, deflate") == key("gzip"))
        #expect(key("br;q=0.5, gzip") == key("gzip"))
        #expect(key("deflate") == key("identity"))
        #expect(key("*") == key("br"))
        #expect(key("br;q=0, *;q=0.1") == key("gzip"))
        #expect(key("gzip;q=0") == key("identity"))
        #expect(key("br") != key("gzip"))
        // A list that is too long to sort does not mean that no value is accepted.
        let long = (["br"] + (0..<32).map { "x\($0)" }).joined(separator: ",")
        for value in ["identity", "", "br"] { #expect(key(long) != key(value)) }
    }

    @Test("A list that is too long to sort is compared as it stands")
    func longLists() {
        let members = (10..<50).map { "l\($0)" }
        func key(_ members: [String]) -> VariantKey? {
            Self.key(["accept-language"], [("Accept-Language", members.joined(separator: ","))])
        }
        #expect(key(members) == key(members))
        #expect(key(members) != key(members.reversed()))
        #expect(key(Array(members.prefix(32))) == key(members.prefix(32).reversed()))
    }

    @Test("A key depends on the meaning of the request alone", arguments: 0..<64 as Range<UInt64>)
    func shuffledRequests(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let names = ["a", "bb", "accept-language", "user-agent"]
        let values = ["", "1", "1, 2", "en;q=0.5, de", "\"x, y\"", "é", "1,", ",", "/a, b"]
        var lines: Lines = names.compactMap { name in
            Bool.random(using: &random) ? (name, values.randomElement(using: &random) ?? "") : nil
        }
        let key = Self.key(names, lines)
        lines.append(("noise", "x"))
        lines.shuffle(using: &random)
        #expect(Self.key(names.shuffled(using: &random), lines) == key)
        lines.append(("bb", "something else"))
        #expect(Self.key(names, lines) != key)
    }
}
