import Testing

@testable import HTTPCaching

@Suite("Targeted cache control, RFC 9213")
struct TargetedDirectivesTests {
    private static func scene(_ targeted: String, _ lines: Lines = []) -> Scene {
        Scene(lines + [("CDN-Cache-Control", targeted)])
    }

    @Test("§2.2: it speaks instead of Cache-Control and Expires")
    func replacesTheOthers() {
        let control = ("Cache-Control", "max-age=1")
        #expect(Self.scene("max-age=3600", [control]).lifetime.seconds == 3_600)
        #expect(Self.scene("max-age=1", [("Cache-Control", "max-age=3600")]).lifetime.seconds == 1)
        #expect(Self.scene("max-age=60", [("Expires", "0")]).lifetime.seconds == 60)
        #expect(Self.scene("max-age=0", [("Expires", Scene.date(60))]).lifetime.seconds == 0)
        let silent = Self.scene("foo", [("Expires", Scene.date(60)), control])
        #expect(silent.lifetime.source == .none)
        #expect(Self.scene("max-age=60", [("Cache-Control", "no-store")]).decision.refusal == nil)
        #expect(Self.scene("max-age=60", [("Cache-Control", "private")]).decision.refusal == nil)
        let noCache = Self.scene("no-cache", [("Cache-Control", "max-age=60"), ("ETag", "\"a\"")])
        #expect(noCache.stored.flags.contains(.noCache))
    }

    @Test(
        "§2.1: directives and their types",
        arguments: [
            Row("no-store", "no-store", Optional(StoreRefusal.responseNoStore)),
            Row("private", "private, max-age=9", .responsePrivate),
            Row("false is not set", "no-store=?0, max-age=9", nil),
            Row("the last of two counts", "no-store, no-store=?0, max-age=9", nil),
            Row("true", "no-store=?1", .responseNoStore),
            Row("private with names", "private=\"a\", max-age=9", nil),
            Row("parameters are ignored", "max-age=9;foo=bar", nil),
            Row("unknown members are skipped", "foo, bar=(1 2);a, baz=:aGk=:, max-age=9", nil),
        ]
    )
    func directives(_ row: Row<String, StoreRefusal?>) {
        #expect(Self.scene(row.input).decision.refusal == row.expected)
    }

    @Test(
        "§2.1: a field that is no dictionary, or has a wrong type, or is empty, is ignored",
        arguments: [
            "max-age=10000, &&&&&", "max-age=\"10000\"", "max-age=1.5", "max-age=-1", "max-age",
            "MaX-aGe=3600", "max-age =3600", "max-age= 3600", "max-age=3600,", "", "no-store=1",
            "max-age=1234567890123456", "private=1", "max-age=3600 no-cache", "\"max-age\"=1",
        ]
    )
    func ignored(_ value: String) {
        let scene = Self.scene(value, [("Cache-Control", "no-store")])
        #expect(!scene.response.flags.contains(.isTargeted))
        #expect(scene.decision.refusal == .responseNoStore)
    }

    @Test("Numbers are clamped like those of Cache-Control")
    func clamped() {
        #expect(Self.scene("max-age=2147483648").lifetime.seconds == 2_147_483_648)
        #expect(Self.scene("max-age=99999999999").lifetime.seconds == 2_147_483_648)
    }

    @Test("§2.2: the first target that is present and sound")
    func targetList() {
        var rules = StoringRules.shared
        rules.targetedFields = ["Example-Cache-Control", "CDN-Cache-Control"]
        let cdn = ("CDN-Cache-Control", "max-age=20")
        func seconds(_ lines: Lines) -> UInt32 { Scene(lines, rules: rules).lifetime.seconds }
        #expect(seconds([cdn, ("Example-Cache-Control", "max-age=10")]) == 10)
        #expect(seconds([cdn, ("Example-Cache-Control", "max-age=x y")]) == 20)
        #expect(seconds([cdn]) == 20)
        rules.targetedFields = []
        #expect(seconds([cdn, ("Cache-Control", "max-age=30")]) == 30)
    }

    @Test(
        "A target may have any name",
        arguments: [
            "X", "Cache-Control", "Expires", "Surrogate-Control",
            String(repeating: "n", count: 63), String(repeating: "n", count: 64),
            String(repeating: "n", count: 1_000),
        ]
    )
    func anyName(_ name: String) {
        var rules = StoringRules.shared
        rules.targetedFields = [name]
        let scene = Scene([("Server", "s"), (name.uppercased(), "max-age=20")], rules: rules)
        #expect(scene.lifetime.seconds == 20)
        #expect(scene.response.flags.contains(.isTargeted))
        let other = Scene([(name + "s", "max-age=20"), ("Server", "s")], rules: rules)
        #expect(!other.response.flags.contains(.isTargeted))
    }

    @Test("Several lines are one dictionary")
    func severalLines() {
        let scene = Scene([
            ("CDN-Cache-Control", "max-age=20"), ("CDN-Cache-Control", "stale-if-error=5"),
        ])
        #expect(scene.lifetime.seconds == 20)
        #expect(scene.response.directives.staleIfErrorSeconds == 5)
        let broken = Scene([("CDN-Cache-Control", "max-age=20"), ("CDN-Cache-Control", "=")])
        #expect(!broken.response.flags.contains(.isTargeted))
    }

    @Test("A private cache is no target")
    func privateCacheIgnoresIt() {
        let scene = Scene([("CDN-Cache-Control", "max-age=20")], rules: .private)
        #expect(scene.lifetime.seconds == 0)
    }
}
