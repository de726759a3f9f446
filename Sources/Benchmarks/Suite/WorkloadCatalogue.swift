/// All workloads, in the order in which they run.
package enum WorkloadCatalogue {
    package static let all: [Workload] = [
        .memoryHit, .httpHit, .httpAnswers, .httpMiss, .memoryHitUnderWrites, .mixed, .hotKey,
        .store, .diskHitWarm, .diskHitCold, .diskHitProxy, .diskStore, .stampede, .staleRefresh,
        .openLoop, .restart, .footprint, .writeAmplification,
    ]

    /// Returns the workloads with the given names, or all of them if no name is given.
    package static func workloads(named names: [String]) throws -> [Workload] {
        if names.isEmpty { return all }
        return try names.map { name in
            guard let workload = all.first(where: { $0.name == name }) else {
                throw UsageError("`\(name)` is not a workload; bench-cli list shows them")
            }
            return workload
        }
    }
}
