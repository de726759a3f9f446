import Platform

/// Work repeated in chunks until the time is up, on one or several threads.
///
/// A chunk is `chunkSize` operations. The clock is read once for each chunk, so the cost of the
/// call is too small to measure. The time of an operation is taken from the median chunk, because a
/// chunk in which the thread lost its processor measures another program. The peers do the same.
enum TimedLoop {
    static let chunkSize = 1_024

    /// The combined result of all threads.
    struct Outcome: Sendable {
        var operations = 0
        var correct: UInt64 = 0
        var allocations: UInt64 = 0
        var nanosecondsPerOperation = 0.0
        /// Times of single operations if they are timed singly, otherwise of chunks.
        var histogram = Histogram()

        /// Throws unless every operation gave the expected result.
        func requireAllCorrect(_ what: String) throws {
            try WorkloadFailure.require(
                correct == UInt64(operations),
                "\(what): \(UInt64(operations) - correct) of \(operations) operations failed"
            )
        }
    }

    /// Repeats `chunk`, which performs `chunkSize` operations and returns how many were correct.
    ///
    /// The time of an operation is that of one thread: if two threads do twice the work of one in
    /// the same time, the time of an operation is unchanged.
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

    /// Times every call of `operation`, which returns whether its result was correct.
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
