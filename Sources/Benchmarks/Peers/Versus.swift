/// A comparison with other caches, and its workloads.
package enum Versus: String, Sendable, CaseIterable {
    case memory
    case disk

    /// The workloads that run the peers, and our own workloads that serve the same targets.
    package func workloads(_ peers: [PeerProgram.Launch]) throws -> [Workload] {
        switch self {
        case .memory:
            try [
                MemoryVersus.comparison(peers), HTTPVersus.comparison(peers),
                DropInVersus.comparison(peers, .memory),
            ]
                + WorkloadCatalogue.workloads(named: [
                    "memory-hit-under-writes", "stampede", "footprint",
                ])
        case .disk:
            try [
                .diskHitWarm(beside: peers), .diskStore(beside: peers),
                DropInVersus.comparison(peers, .disk),
            ]
                + WorkloadCatalogue.workloads(named: [
                    "disk-hit-cold", "restart", "footprint", "write-amplification",
                ])
        }
    }

    /// The description and the configuration of each peer.
    package func descriptions(
        _ launches: [PeerProgram.Launch],
        _ plan: WorkloadPlan
    ) throws -> [String] {
        let scratch = try ScratchDirectory(in: plan.scratchDirectory)
        return try launches.map { launch in
            var arguments = [launch.name]
            if self == .disk {
                let bodies = scratch.path + "/bodies"
                try TextFile.write(BodyPool.shared.bytes, to: bodies)
                arguments += [try scratch.makeDirectory(launch.name), bodies]
            }
            let peer = try PeerProgram(launch, arguments: arguments)
            defer { peer.finish() }
            return "\(launch.name): \(try peer.describe())"
        }
    }
}
