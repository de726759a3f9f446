/// The peers of a disk workload; each has a directory of its own beside ours.
final class DiskPeers {
    private let launches: [PeerProgram.Launch]
    private var running: [PeerProgram] = []

    init(_ launches: [PeerProgram.Launch]) { self.launches = launches }

    /// Starts the peers, which read their bodies from a file that we write.
    func start(in scratch: ScratchDirectory) throws {
        guard !launches.isEmpty else { return }
        let bodies = scratch.path + "/bodies"
        try TextFile.write(BodyPool.shared.bytes, to: bodies)
        for launch in launches {
            let directory = try scratch.makeDirectory(launch.name)
            running.append(
                try PeerProgram(launch, arguments: [launch.name, directory, bodies])
            )
        }
    }

    var count: Int { launches.count }

    /// Has each peer perform the command, one after the other.
    func perform(_ command: String) throws -> [(name: String, answer: PeerProgram.Answer)] {
        try running.indices.map { try perform(command, by: $0) }
    }

    /// Has one peer perform the command.
    func perform(
        _ command: String,
        by number: Int
    ) throws -> (name: String, answer: PeerProgram.Answer) {
        (running[number].name, try running[number].perform(command))
    }

    func finish() {
        for peer in running { peer.finish() }
        running = []
    }
}
