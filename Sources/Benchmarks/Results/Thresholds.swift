/// Limits for the allocations of an operation; unlike times, these counts are stable.
package struct Thresholds: Sendable {
    /// The largest number of allocations per operation, by workload.
    package let allocationsMax: [(workload: String, limit: Double)]

    /// Parses `{"allocations_per_operation": {"memory-hit": 0, …}}`.
    package init(parsing text: String) throws {
        let json = try JSONValue(parsing: text)
        guard let members = json["allocations_per_operation"]?.members, !members.isEmpty else {
            throw UsageError("the file has no member allocations_per_operation")
        }
        allocationsMax = try members.map { member in
            guard let limit = member.value.double, limit >= 0 else {
                throw UsageError("\(member.name): the limit is not a number of 0 or more")
            }
            return (member.name, limit)
        }
    }

    /// The rows above their limits and the workloads without a count; both are failures.
    package func violations(in measurements: [Measurement]) -> [String] {
        allocationsMax.flatMap { workload, limit -> [String] in
            let rows = measurements.filter {
                $0.workload == workload && $0.quantity == "allocations"
            }
            if rows.isEmpty { return ["\(workload): the allocations were not counted"] }
            return rows.filter { $0.value > limit }.map { row in
                "\(workload): \(row.metric) is \(row.value.threeDigits), more than the limit of "
                    + "\(limit.threeDigits)"
            }
        }
    }
}
