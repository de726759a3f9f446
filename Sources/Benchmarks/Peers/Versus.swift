/// A comparison with others: which workloads it takes.
package enum Versus: String, Sendable, CaseIterable {
    case memory
    case disk

    /// The workloads that run the peers, and those of ours alone that belong to the same targets.
    package func workloads(_ peers: [PeerProgram.Launch]) throws -> [Workload] {
        switch self {
        case .memory:
            [try MemoryVersus.comparison(peers)]
                + (try WorkloadCatalogue.workloads(named: ["memory-hit-under-writes"]))
        case .disk: []
        }
    }

    /// What each peer is and how it is set up.
    package func descriptions(_ launches: [PeerProgram.Launch]) throws -> [String] {
        try launches.map { launch in
            let peer = try PeerProgram(launch, arguments: [launch.name])
            defer { peer.finish() }
            return "\(launch.name): \(try peer.describe())"
        }
    }
}
