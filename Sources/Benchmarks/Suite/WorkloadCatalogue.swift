/// Every workload there is, in the order they run.
package enum WorkloadCatalogue {
    package static let all: [Workload] = [
        .memoryHit, .httpHit, .memoryHitUnderWrites, .mixed, .hotKey, .store, .diskHitWarm,
        .diskHitCold, .diskStore, .stampede, .staleRefresh, .openLoop, .restart, .footprint,
        .writeAmplification,
    ]

    /// The workloads with those names; all of them when no name is given.
    package static func workloads(named names: [String]) throws -> [Workload] {
        if names.isEmpty { return all }
        return try names.map { name in
            guard let workload = all.first(where: { $0.name == name }) else {
                throw UsageError("\(name): no such workload; `bench-cli list` names them all")
            }
            return workload
        }
    }
}
