/// The time that one request may lose to the shared store, in all its looks.
package struct SharedBudget: Hashable, Sendable {
    /// The moment, of the monotonic clock, at which the first look began.
    package let startedNanoseconds: UInt64
    private let spentNanosecondsMax: UInt64
    private var spentNanoseconds: UInt64 = 0

    /// Creates a budget; once commands have taken `spentNanosecondsMax`, no other one is begun.
    package init(startedNanoseconds: UInt64, spentNanosecondsMax: UInt64) {
        self.startedNanoseconds = startedNanoseconds
        self.spentNanosecondsMax = spentNanosecondsMax
    }

    /// Whether the request may send another command.
    package var isLeft: Bool { spentNanoseconds < spentNanosecondsMax }

    /// Counts the time of a command; the wait for another machine's response is not counted.
    package mutating func spend(_ nanoseconds: UInt64) { spentNanoseconds &+= nanoseconds }
}
