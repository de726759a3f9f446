import Benchmarks
import Testing

@Suite struct PeerTests {
    /// A peer in one line of shell; it answers every line with the same text.
    private static func peer(_ answer: String) throws -> PeerProgram {
        let script = "while read line; do echo '\(answer)'; done"
        return try PeerProgram(.init(name: "p", command: ["sh", "-c", script]))
    }

    @Test func anAnswerIsReadLineByLine() throws {
        let text = #"{"nanoseconds_per_operation": 12.5, "operations": 3, "correct": 3}"#
        let peer = try Self.peer(text)
        defer { peer.finish() }
        for _ in 0..<3 {
            let answer = try peer.perform("memory-hit keys=1")
            #expect(answer.nanosecondsPerOperation == 12.5)
            #expect(answer.operations == 3)
        }
    }

    @Test(arguments: [
        #"{"nanoseconds_per_operation": 12, "operations": 3, "correct": 2}"#,
        #"{"nanoseconds_per_operation": 12, "operations": 0, "correct": 0}"#,
        #"{"error": "unknown command"}"#, "not JSON",
    ])
    func aPeerThatDidNotDoTheWorkIsNotCounted(answer: String) throws {
        let peer = try Self.peer(answer)
        defer { peer.finish() }
        #expect(throws: (any Error).self) { try peer.perform("memory-hit") }
    }

    @Test func aPeerThatDiesIsAFailureNotAHang() throws {
        let peer = try PeerProgram(.init(name: "p", command: ["true"]))
        defer { peer.finish() }
        #expect(throws: (any Error).self) { try peer.perform("memory-hit") }
    }

    @Test func aProgramThatIsNotThereIsNamed() {
        #expect(throws: UsageError.self) {
            try PeerProgram(.init(name: "p", command: ["/nonexistent/peer"]))
        }
    }

    @Test func aLaunchIsANameAndACommandOfTheShell() throws {
        let text = #"caffeine=printf '%s\n' 'a b' 'c'\''d=e'"#
        let launch = try PeerProgram.Launch(parsing: text)
        #expect(launch.name == "caffeine")
        let process = try Subprocess(launch.command + ["f g", "$h"])
        for line in ["a b", "c'd=e", "f g", "$h"] {
            #expect(try process.receiveLine() == line)
        }
        #expect(process.finish() == 0)
    }

    @Test func aLaunchWithoutANameOrACommandIsRefused() {
        for text in ["caffeine", "=java", "two words=x"] {
            #expect(throws: UsageError.self) { try PeerProgram.Launch(parsing: text) }
        }
    }

    /// A fixed order would give one side the processor's caches and the other side's writes.
    @Test(arguments: 2...5)
    func everySideHasEveryPlaceInTheOrder(count: Int) {
        let orders = (0..<count).map { RoundOrder.sides(count, round: $0) }
        for order in orders { #expect(order.sorted() == Array(0..<count)) }
        for place in 0..<count {
            #expect(Set(orders.map { $0[place] }) == Set(0..<count))
        }
        #expect(RoundOrder.sides(2, round: 3) == [1, 0])
    }

    @Test func theLastLineNeedsNoEnd() throws {
        let process = try Subprocess(["printf", "a\\nb"])
        #expect(try process.receiveLine() == "a")
        #expect(try process.receiveLine() == "b")
        #expect(try process.receiveLine() == nil)
        #expect(process.finish() == 0)
    }
}

@Suite struct TargetTests {
    private static func row(
        _ value: Double,
        _ ratio: Double,
        _ parameters: [Measurement.Parameter] = []
    ) -> Measurement {
        Measurement(
            workload: "memory-hit",
            quantity: "time_per_hit",
            parameters: parameters,
            unit: .nanoseconds,
            better: .lower,
            rounds: Rounds([value]),
            ratio: .init(to: "caffeine", ratio)
        )
    }

    @Test func aRatioIsHeldAgainstItsLimit() throws {
        let target = try #require(Target.all.first { $0.subject == .ratio(to: "caffeine") })
        #expect(target.judge([Self.row(10, 0.9)]).map(\.isMet) == [true])
        #expect(target.judge([Self.row(10, 1.1)]).map(\.isMet) == [false])
    }

    @Test func unmeasuredTargetIsNeitherMetNorMissed() throws {
        let target = try #require(Target.all.first { $0.subject == .ratio(to: "caffeine") })
        let judgements = target.judge([])
        #expect(judgements.count == 1)
        #expect(judgements[0].isMet == nil)
        #expect(TargetTable.text("memory", []).contains("not measured"))
    }

    @Test func theTableNamesEveryTargetOfItsComparison() {
        for comparison in Set(Target.all.map(\.comparison)) {
            let text = TargetTable.text(comparison, [])
            for target in Target.all where target.comparison == comparison {
                #expect(text.contains(target.title))
            }
        }
    }
}
