/// All workloads, in the order in which they run.
package enum WorkloadCatalogue {
    /// The workloads of one machine.
    package static let all: [Workload] = [
        .memoryHit, .httpHit, .httpAnswers, .httpMiss, .memoryHitUnderWrites, .mixed, .hotKey,
        .store, .diskHitWarm, .diskHitCold, .diskHitProxy, .diskStore, .stampede, .staleRefresh,
        .openLoop, .restart, .footprint, .writeAmplification,
    ]

    /// The workloads of several machines, which need a redis-server.
    package static let fleet: [Workload] = [
        .fleetSharedHit, .fleetLatency, .fleetCold, .fleetStopped,
    ]

    /// Returns the workloads with the given names, or all that need no server if no name is given.
    package static func workloads(named names: [String]) throws -> [Workload] {
        if names.isEmpty { return all }
        return try names.map { name in
            guard let workload = (all + fleet).first(where: { $0.name == name }) else {
                throw UsageError("`\(name)` is not a workload; bench-cli list shows them")
            }
            return workload
        }
    }
}
