/// Work that is repeated in chunks until time is up, on one thread or several.
///
/// A chunk is many operations: the clock is read once for all of them, and calling the work costs
/// nothing that could be seen. The time of an operation is that of the median chunk: one in which
/// the thread lost its processor to another program tells of that program. Peers do the same.
enum TimedLoop {
    static let chunkSize = 1_024

    /// What all threads did together.
    struct Outcome: Sendable {
        var operations = 0
        var correct: UInt64 = 0
        var allocations: UInt64 = 0
        var nanosecondsPerOperation = 0.0
        /// Of single operations where they are timed one by one, else of chunks.
        var histogram = Histogram()

        /// Fails unless every single operation found what it should have found.
        func requireAllCorrect(_ what: String) throws {
            try WorkloadFailure.require(
                correct == UInt64(operations),
                "\(what): \(UInt64(operations) - correct) of \(operations) went wrong"
            )
        }
    }

    /// Repeats `chunk`, which does `chunkSize` operations and says how many of them were correct.
    ///
    /// The time of an operation is that of one thread: two threads that do twice the work of one
    /// in the same time take as long for each.
    static func run(
        threads: Int,
        nanoseconds: UInt64,
        _ chunk: @escaping @Sendable (_ thread: Int, _ number: Int) -> UInt64
    ) -> Outcome {
        let outcome = ThreadTeam.run(threads: threads) { thread -> Outcome in
            var mine = Outcome()
            let allocationsBefore = Allocations.ofThisThread
            let start = monotonicNanoseconds()
            var (number, last) = (0, start)
            repeat {
                mine.correct &+= chunk(thread, number)
                number += 1
                let now = monotonicNanoseconds()
                mine.histogram.record(now &- last)
                last = now
            } while last &- start < nanoseconds
            mine.allocations = Allocations.ofThisThread &- allocationsBefore
            mine.operations = number * chunkSize
            let median = mine.histogram.percentile(0.5)
            mine.nanosecondsPerOperation = Double(median) / Double(chunkSize)
            return mine
        }
        return sum(outcome.results)
    }

    /// Times `operation` one by one; it says whether it went as it should.
    static func runSingly(
        threads: Int,
        operations: Int,
        _ operation: @escaping @Sendable (_ thread: Int, _ number: Int) -> Bool
    ) -> Outcome {
        _ = Stopwatch.readingNanoseconds
        let outcome = ThreadTeam.run(threads: threads) { thread -> Outcome in
            var mine = Outcome(operations: operations)
            let start = monotonicNanoseconds()
            for number in 0..<operations {
                let before = monotonicNanoseconds()
                let isCorrect = operation(thread, number)
                mine.histogram.record(
                    Stopwatch.elapsed(from: before, to: monotonicNanoseconds())
                )
                if isCorrect { mine.correct += 1 }
            }
            mine.nanosecondsPerOperation =
                Double(monotonicNanoseconds() &- start) / Double(operations)
            return mine
        }
        return sum(outcome.results)
    }

    static func sum(_ parts: [Outcome]) -> Outcome {
        var whole = Outcome()
        for part in parts {
            whole.operations += part.operations
            whole.correct &+= part.correct
            whole.allocations &+= part.allocations
            whole.nanosecondsPerOperation += part.nanosecondsPerOperation / Double(parts.count)
            whole.histogram.merge(part.histogram)
        }
        return whole
    }
}
