import CacheEngine
import CacheTestSupport
import Testing

/// The engine against an oracle.
///
/// Each wish of a client, alone and in pairs, in each state of the store, with each conduct of the
/// origin. A response is right if the origin would have given it without a cache, or if RFC 9110
/// and RFC 9111 allow a cache to give it (`AllowedAnswers`).
@Suite struct OracleTests {
    @Test func everyAnswerIsTheOriginsOrOneThatTheStandardAllows() async throws {
        let start = ContinuousClock.now
        let violations = try await violations(Wish.singlesAndPairs, .both, .init())
        report(violations, Wish.singlesAndPairs, since: start)
    }

    @Test(arguments: Representation.Validators.allCases.filter { $0 != .both })
    func theSameHoldsWhateverValidatorsTheOriginSends(
        _ validators: Representation.Validators
    ) async throws {
        let start = ContinuousClock.now
        let violations = try await violations(
            Wish.singles,
            validators,
            .init(staleIfErrorSeconds: 600)
        )
        report(violations, Wish.singles, since: start)
    }

    @Test func theSameHoldsIfTheCacheEvaluatesConditionsOfMisses() async throws {
        let start = ContinuousClock.now
        let violations = try await violations(
            Wish.singlesAndPairs,
            .both,
            .init(conditionMiss: .whole)
        )
        report(violations, Wish.singlesAndPairs, since: start)
    }

    @Test func everyHistoryOfThreeStepsGivesAllowedAnswers() async throws {
        let start = ContinuousClock.now
        let steps = OracleSequence.Step.allCases.filter { !$0.isMinor }
        var sequences: [OracleSequence] = []
        for first in steps {
            for second in steps {
                sequences += steps.map { .init(steps: [first, second, $0], varies: true) }
            }
        }
        report(try await faults(sequences), sequences, since: start)
    }

    @Test func longHistoriesGiveAllowedAnswers() async throws {
        let start = ContinuousClock.now
        var random = SeededRandom(seed: 9_111)
        let sequences = (0..<1_000).map { index in
            OracleSequence(
                steps: (0..<12).map { _ in
                    OracleSequence.Step.allCases.randomElement(using: &random)!
                },
                varies: index.isMultiple(of: 2)
            )
        }
        report(try await faults(sequences), sequences, since: start)
    }

    private func faults(_ sequences: [OracleSequence]) async throws -> [String] {
        try await withThrowingTaskGroup(of: [String].self) { group in
            for start in stride(from: 0, to: sequences.count, by: 100) {
                let some = sequences[start..<min(start + 100, sequences.count)]
                group.addTask {
                    var faults: [String] = []
                    for sequence in some { faults += try await sequence.faults() }
                    return faults
                }
            }
            var faults: [String] = []
            for try await found in group { faults += found }
            return faults
        }
    }

    private func report(
        _ faults: [String],
        _ sequences: [OracleSequence],
        since start: ContinuousClock.Instant
    ) {
        print("\(sequences.count) histories: \(ContinuousClock.now - start)")
        guard !faults.isEmpty else { return }
        // The shortest history of each fault.
        let groups = Dictionary(grouping: faults) { $0.split(separator: "|").last ?? "" }
        let shortest = groups.values
            .compactMap { group in group.min { ($0.count, $0) < ($1.count, $1) } }
            .sorted { ($0.count, $0) < ($1.count, $1) }
        Issue.record(
            """
            \(faults.count) faults of \(groups.count) kinds:
            \(shortest.prefix(Self.groupsShown).joined(separator: "\n"))
            """
        )
    }

    /// Few, because the invariants of a whole cache are checked after each change.
    private static let wishesPerCache = 64

    private func violations(
        _ wishes: [[Wish]],
        _ validators: Representation.Validators,
        _ terms: AllowedAnswers.Terms
    ) async throws -> [OracleRun.Violation] {
        try await withThrowingTaskGroup(of: [OracleRun.Violation].self) { group in
            for scene in Scene.allCases {
                for conduct in OracleOrigin.Conduct.allCases {
                    for start in stride(from: 0, to: wishes.count, by: Self.wishesPerCache) {
                        let end = min(wishes.count, start + Self.wishesPerCache)
                        group.addTask {
                            try await OracleRun(
                                scene,
                                conduct,
                                Array(wishes[start..<end]),
                                validators: validators,
                                terms: terms
                            ).violations()
                        }
                    }
                }
            }
            var violations: [OracleRun.Violation] = []
            for try await found in group { violations += found }
            return violations
        }
    }

    private func report(
        _ violations: [OracleRun.Violation],
        _ wishes: [[Wish]],
        since start: ContinuousClock.Instant
    ) {
        let count = wishes.count * Scene.allCases.count * OracleOrigin.Conduct.allCases.count
        print("\(count) combinations, 5 requests each: \(ContinuousClock.now - start)")
        let groups = ViolationGroup.made(of: violations)
        guard !violations.isEmpty else { return }
        Issue.record(
            """
            \(violations.count) violations in \(groups.count) groups:
            \(groups.prefix(Self.groupsShown).map(\.description).joined(separator: "\n"))
            """
        )
    }

    private static let groupsShown = 200
}
