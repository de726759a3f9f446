import Benchmarks
import Testing

@Suite struct JSONTests {
    @Test func textsAndNumbersThatNeedCareAreReadBack() throws {
        let texts = ["quote \" backslash \\ line\nbreak \u{1} é 😀": 1e300]
        #expect(try JSONText.decode(from: try JSONText.encode(texts)) == texts)
        // A spread around zero is infinite.
        let spreads = [Rounds([-1, 1]).spread, -0.5]
        #expect(try JSONText.decode(from: try JSONText.encode(spreads)) == spreads)
        #expect(spreads[0] == .infinity)
    }

    @Test(arguments: [
        "", "{", "[1,]", "{\"results\"}", "nul", "\"open", "1 2", "[]", "{}",
        #"{"machine": {}, "build": {}, "results": 7}"#,
        #"{"machine": {}, "build": {}, "results": [{"workload": "x", "metric": "y"}]}"#,
        String(repeating: "[", count: 100_000),
    ])
    func textThatIsNoResultIsRefused(text: String) {
        #expect(throws: JSONError.self) { try JSONText.decode(RunResult.self, from: text) }
    }

    @Test func missingMemberIsNamed() {
        let text = #"{"machine": {}, "build": {}, "results": [{"workload": "x", "metric": "y"}]}"#
        #expect {
            try JSONText.decode(RunResult.self, from: text)
        } throws: { error in
            "\(error)".contains("`results.Index 0.value` is missing")
        }
    }
}
