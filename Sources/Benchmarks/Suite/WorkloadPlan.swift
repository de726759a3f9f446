/// How large a run is, and what the caller wants of it.
package struct WorkloadPlan: Sendable {
    /// How much work a run does.
    package enum Scale: String, Sendable {
        /// The least that runs every line: for the check.
        case smoke
        /// Enough for a first impression: the whole suite in about a minute.
        case quick
        /// Enough to decide by.
        case full
    }

    package var scale: Scale
    /// The number of threads, where a workload would otherwise try several.
    package var threads: Int?
    /// The number of keys, where a workload would otherwise try several.
    package var keys: Int?
    /// Where workloads with a disk may put their files.
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

    /// Five at least: the median of fewer says little.
    package var rounds: Int {
        switch scale {
        case .smoke: 2
        case .quick: 5
        case .full: 9
        }
    }

    /// How long one round of one case should take.
    package var roundNanoseconds: UInt64 {
        switch scale {
        case .smoke: 2_000_000
        case .quick: 50_000_000
        case .full: 300_000_000
        }
    }

    /// The value for this scale.
    package func sized<Value>(smoke: Value, quick: Value, full: Value) -> Value {
        switch scale {
        case .smoke: smoke
        case .quick: quick
        case .full: full
        }
    }

    /// One thread, and as many as there are cores.
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
