/// The size of a run and the caller's choices for it.
package struct WorkloadPlan: Sendable {
    /// The amount of work in a run.
    package enum Scale: String, Codable, Sendable {
        /// The least work that runs every line, for `make check`.
        case smoke
        /// Enough for a first impression: the whole suite takes about a minute.
        case quick
        /// Enough for a decision.
        case full
    }

    /// More threads than any machine has processors; the system starts them all.
    package static let threadsMax = 1_024
    /// Keys whose bytes alone are 4.6 GB.
    package static let keysMax = 100_000_000

    package var scale: Scale
    /// The number of threads; if `nil`, a workload may try several.
    package var threads: Int?
    /// The number of keys; if `nil`, a workload may try several.
    package var keys: Int?
    /// The directory for the files of disk workloads.
    package var scratchDirectory: String

    package init(
        scale: Scale,
        threads: Int? = nil,
        keys: Int? = nil,
        scratchDirectory: String = WorkloadPlan.defaultScratchDirectory
    ) {
        self.scale = scale
        self.threads = threads
        self.keys = keys
        self.scratchDirectory = scratchDirectory
    }

    /// The number of rounds; below five, the median is unreliable.
    package var rounds: Int {
        switch scale {
        case .smoke: 2
        case .quick: 5
        case .full: 9
        }
    }

    /// The time that one round of one case should take.
    package var roundNanoseconds: UInt64 {
        switch scale {
        case .smoke: 2_000_000
        case .quick: 50_000_000
        case .full: 300_000_000
        }
    }

    /// Returns the value for this scale.
    package func sized<Value>(smoke: Value, quick: Value, full: Value) -> Value {
        switch scale {
        case .smoke: smoke
        case .quick: quick
        case .full: full
        }
    }

    /// The numbers of threads to measure, from one up to the number of cores.
    package var threadCounts: [Int] {
        if let threads { return [threads] }
        let cores = MachineDescription.coreCount
        return sized(smoke: [2], quick: Self.distinct(1, cores), full: Self.doubling(to: cores))
    }

    private static func distinct(_ first: Int, _ second: Int) -> [Int] {
        first == second ? [first] : [first, second]
    }

    private static func doubling(to last: Int) -> [Int] {
        var counts = [1]
        while counts[counts.count - 1] * 2 < last { counts.append(counts[counts.count - 1] * 2) }
        return last > 1 ? counts + [last] : counts
    }
}
