import Testing

@testable import CacheEngine

/// The time of a request for the shared store.
@Suite struct SharedBudgetTests {
    /// The milliseconds of commands, and whether another command may follow.
    @Test(
        arguments: [
            ([], true), ([25], true), ([34], true), ([35], false), ([20, 14], true),
            ([20, 15], false),
            ([12, 12, 12], false), ([1_000], false),
        ] as [([UInt64], Bool)]
    )
    func budgetEndsAfterSlowCommands(_ milliseconds: [UInt64], _ isLeft: Bool) {
        var budget = SharedBudget(startedNanoseconds: 0, spentNanosecondsMax: 35_000_000)
        for time in milliseconds { budget.spend(time * 1_000_000) }
        #expect(budget.isLeft == isLeft)
    }
}
