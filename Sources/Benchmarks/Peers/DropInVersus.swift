/// The engine behind URLCache's interface, compared with Foundation's URLCache.
///
/// Both sides run the same program with one word changed: the same calls with the same values, so
/// that only the cache differs. It is a separate program because the engine's own tools do not link
/// Foundation.
enum DropInVersus {
    enum Tier: String {
        case memory
        case disk
    }

    static func comparison(_ launches: [PeerProgram.Launch], _ tier: Tier) -> Workload {
        let launch = launches.first { $0.name == "urlcache" }
        return Workload(name: "drop-in", question: "EngineURLCache beside URLCache") { plan in
            launch.map { [DropInCase(plan, $0, tier)] } ?? []
        }
    }
}

private final class DropInCase: WorkloadCase {
    private let plan: WorkloadPlan
    private let launch: PeerProgram.Launch
    private let tier: DropInVersus.Tier
    private let bodySizeBytes: Int
    private var scratch: ScratchDirectory?
    private var engine: PeerProgram?
    private var foundation: PeerProgram?
    private var roundNumber = 0

    init(_ plan: WorkloadPlan, _ launch: PeerProgram.Launch, _ tier: DropInVersus.Tier) {
        self.plan = plan
        self.launch = launch
        self.tier = tier
        bodySizeBytes = tier == .memory ? 128 : 4_096
    }

    var parameters: [Measurement.Parameter] {
        [.init("tier", tier.rawValue), .init("size", "\(bodySizeBytes) B")]
    }

    func prepare() async throws {
        let scratch = try ScratchDirectory(in: plan.scratchDirectory)
        self.scratch = scratch
        if tier == .disk { try TextFile.write(BodyPool.shared.bytes, to: bodies(scratch)) }
        engine = try start("enginecache", in: scratch)
        foundation = try start("urlcache", in: scratch)
        if tier == .disk { _ = try both(storing, turn: 0) }
        _ = try both(hitting, turn: 0)
    }

    func round() async throws -> [Sample] {
        roundNumber += 1
        // In the order of the stores before, so that the last one to store has time to write.
        let hits = try both(hitting, turn: roundNumber - 1)
        var samples = [Sample.time("time_per_hit", hits.ours, against: launch.name, hits.theirs)]
        if tier == .disk {
            let stores = try both(storing, turn: roundNumber)
            samples.append(
                .time("time_per_store", stores.ours, against: launch.name, stores.theirs)
            )
        }
        return samples
    }

    func finish() async throws {
        engine?.finish()
        foundation?.finish()
        scratch = nil
    }

    private var entryCount: Int { plan.sized(smoke: 16, quick: 64, full: 64) }

    private var storing: String { "disk-store size=\(bodySizeBytes) entries=\(entryCount)" }

    private var hitting: String {
        switch tier {
        case .memory:
            "http-hit keys=1024 size=\(bodySizeBytes) "
                + "milliseconds=\(max(5, plan.roundNanoseconds / 1_000_000))"
        case .disk:
            "disk-hit size=\(bodySizeBytes) entries=\(entryCount) operations=100"
        }
    }

    /// The nanoseconds of one operation on each side; the order alternates from turn to turn.
    private func both(_ command: String, turn: Int) throws -> (ours: Double, theirs: Double) {
        guard let engine, let foundation else { throw WorkloadFailure.notPrepared }
        var theirs = 0.0
        if turn % 2 == 0 { theirs = try time(foundation, command) }
        let ours = try time(engine, command)
        if turn % 2 == 1 { theirs = try time(foundation, command) }
        return (ours, theirs)
    }

    private func time(_ peer: PeerProgram, _ command: String) throws -> Double {
        try peer.perform(command).nanosecondsPerOperation
    }

    /// Starts a peer; on disk it gets a directory of its own and the file of bodies.
    private func start(_ name: String, in scratch: ScratchDirectory) throws -> PeerProgram {
        let places = tier == .disk ? [try scratch.makeDirectory(name), bodies(scratch)] : []
        let launch = PeerProgram.Launch(name: name, command: launch.command)
        return try PeerProgram(launch, arguments: [name] + places)
    }

    private func bodies(_ scratch: ScratchDirectory) -> String { scratch.path + "/bodies" }
}
