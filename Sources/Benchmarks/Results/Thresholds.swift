/// Limits for the allocations of an operation; unlike times, these counts are stable.
package struct Thresholds: Sendable {
    /// The largest number of allocations per operation, by workload.
    package let allocationsMax: [(workload: String, limit: Double)]

    /// Parses `{"allocations_per_operation": {"memory-hit": 0, …}}`.
    package init(parsing text: String) throws {
        let file: File = try JSONText.decode(from: text)
        guard !file.limits.isEmpty else {
            throw UsageError("allocations_per_operation is empty; give a limit for each workload")
        }
        allocationsMax = try file.limits.sorted { $0.key < $1.key }.map { workload, limit in
            guard limit >= 0 else {
                throw UsageError("\(workload): the limit \(limit) is negative; give 0 or more")
            }
            return (workload, limit)
        }
    }

    private struct File: Decodable {
        let limits: [String: Double]

        enum CodingKeys: String, CodingKey {
            case limits = "allocations_per_operation"
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
