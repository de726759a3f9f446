import Testing

@testable import bench_cli

@Suite struct ProgressLineTests {
    /// The text that is written for the steps 1 to 25 of 40.
    private static func written(isTerminal: Bool) -> String {
        var text = ""
        var line = Terminal.ProgressLine(isTerminal: isTerminal) { text += $0 }
        for step in 1...25 { line.show("1/2 disk-store", percent: step * 100 / 40) }
        line.clear()
        return text
    }

    @Test func aTerminalShowsOneLineThatIsRewritten() {
        let text = Self.written(isTerminal: true)
        #expect(!text.contains("\n"))
        #expect(text.split(separator: "\r").count == 26)
        #expect(text.hasSuffix("\r"))
    }

    @Test func aStepThatLooksTheSameIsWrittenOnce() {
        var text = ""
        var line = Terminal.ProgressLine(isTerminal: true) { text += $0 }
        for _ in 0..<3 { line.show("a", percent: 5) }
        #expect(text == "\ra 5 %")
    }

    /// The amounts after each of 64 steps of 16 MiB.
    private static func amounts(isTerminal: Bool, total: Int?) -> String {
        var text = ""
        var line = Terminal.ProgressLine(isTerminal: isTerminal) { text += $0 }
        for step in 1...64 { line.show("reading", bytes: step << 24, of: total) }
        return text
    }

    @Test func bytesOfAKnownTotalAreAShare() {
        let lines = (0...10).map { "reading \($0 * 10) %\n" }
        #expect(Self.amounts(isTerminal: false, total: 64 << 24) == lines.joined())
    }

    @Test func bytesOfAnUnknownTotalAreShownAsTheyDouble() {
        let lines = [
            "16 MiB", "32 MiB", "64 MiB", "128 MiB", "256 MiB", "512 MiB", "1 GiB",
        ].map { "reading, \($0)\n" }
        #expect(Self.amounts(isTerminal: false, total: nil) == lines.joined())
        #expect(Self.amounts(isTerminal: true, total: nil).split(separator: "\r").count == 64)
    }

    @Test func aFileGetsOneLineForEachTenth() {
        let shares = (0...6).map { "1/2 disk-store \($0 * 10) %\n" }
        #expect(Self.written(isTerminal: false) == shares.joined())
    }
}
