/// How many allocations an operation may make: counts are stable where times are not.
package struct Thresholds: Sendable {
    /// The most allocations per operation, by workload.
    package let allocationsMax: [(workload: String, limit: Double)]

    /// Reads `{"allocations_per_operation": {"memory-hit": 0, …}}`.
    package init(parsing text: String) throws {
        let json = try JSONValue(parsing: text)
        guard let members = json["allocations_per_operation"]?.members, !members.isEmpty else {
            throw UsageError("no thresholds in it")
        }
        allocationsMax = try members.map { member in
            guard let limit = member.value.double, limit >= 0 else {
                throw UsageError("\(member.name): a limit is a number of zero or more")
            }
            return (member.name, limit)
        }
    }

    /// The rows above their limits, and the workloads that gave no count: both are failures.
    package func violations(in measurements: [Measurement]) -> [String] {
        allocationsMax.flatMap { workload, limit -> [String] in
            let rows = measurements.filter {
                $0.workload == workload && $0.quantity == "allocations"
            }
            if rows.isEmpty { return ["\(workload): its allocations were not counted"] }
            return rows.filter { $0.value > limit }.map { row in
                "\(workload): \(row.metric) is \(row.value.threeDigits), at most "
                    + "\(limit.threeDigits) allowed"
            }
        }
    }
}
