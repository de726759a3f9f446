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

    @Test func aFileGetsOneLineForEachTenth() {
        let shares = (0...6).map { "1/2 disk-store \($0 * 10) %\n" }
        #expect(Self.written(isTerminal: false) == shares.joined())
    }
}
