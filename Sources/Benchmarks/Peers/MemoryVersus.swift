import CacheEngine

/// A memory hit compared with other caches in the same run.
///
/// All sides use the same keys (46 bytes), the same bodies (128 bytes, of which the first byte is
/// read), the same order and the same threads. How the key reaches the cache makes a difference of
/// its own, so there are four forms:
/// - `parsed`: the key is bytes just received, hashed for each look-up on both sides, as in a
///   server.
/// - `held`: the caller keeps the key with its hash, on both sides.
/// - `same`: as `held` for us; on the JVM the key is the stored object itself, which is found by
///   its address without a comparison of its bytes.
/// - `in-place`: as `held` for the peers; we read the entry in place.
///
/// In the first three forms we return the entry and count its reference, which the JVM need not do.
package enum MemoryVersus {
    package static let workload = "memory-hit"

    /// One workload for all peers; their programs run until it is finished.
    package static func comparison(_ launches: [PeerProgram.Launch]) throws -> Workload {
        let launches = launches.filter { $0.name != "urlcache" }
        return Workload(name: workload, question: "a memory hit beside the peers'") { plan in
            let peers = Shared { try launches.map { try PeerProgram($0, arguments: [$0.name]) } }
            return [1_024, 100_000].flatMap { keys -> [any WorkloadCase] in
                let fixture = Shared { MemoryFixture(keyCount: keys) }
                return [1, 2].flatMap { threads in
                    KeyForm.allCases.map { form in
                        MemoryVersusCase(plan, fixture, peers, Setting(keys, threads, form))
                    }
                }
            }
        }
    }

    fileprivate enum KeyForm: String, CaseIterable {
        case parsed
        case held
        case same
        case inPlace = "in-place"

        /// The key form that the peers are asked to use.
        var peers: KeyForm { self == .inPlace ? .held : self }
    }

    fileprivate struct Setting {
        let keys: Int
        let threads: Int
        let form: KeyForm

        init(_ keys: Int, _ threads: Int, _ form: KeyForm) {
            self.keys = keys
            self.threads = threads
            self.form = form
        }

        func command(milliseconds: UInt64) -> String {
            "memory-hit keys=\(keys) threads=\(threads) key=\(form.peers.rawValue) "
                + "milliseconds=\(milliseconds)"
        }
    }
}

private final class MemoryVersusCase: WorkloadCase {
    private let plan: WorkloadPlan
    private let shared: Shared<MemoryFixture>
    private let peers: Shared<[PeerProgram]>
    private let setting: MemoryVersus.Setting
    private var roundNumber = 0

    init(
        _ plan: WorkloadPlan,
        _ shared: Shared<MemoryFixture>,
        _ peers: Shared<[PeerProgram]>,
        _ setting: MemoryVersus.Setting
    ) {
        self.plan = plan
        self.shared = shared
        self.peers = peers
        self.setting = setting
    }

    var parameters: [Measurement.Parameter] {
        [
            .init("keys", setting.keys), .init("threads", setting.threads),
            .init("key", setting.form.rawValue),
        ]
    }

    /// Warms up the peers, because the JVM interprets code that it runs for the first time.
    func prepare() async throws {
        for peer in try peers.get() {
            _ = try peer.perform(
                setting.command(milliseconds: plan.sized(smoke: 20, quick: 1_000, full: 2_000))
            )
        }
        _ = ours(nanoseconds: plan.roundNanoseconds)
    }

    func round() async throws -> [Sample] {
        roundNumber += 1
        // The order alternates from round to round.
        let isOursFirst = roundNumber % 2 == 0
        let first = isOursFirst ? ours(nanoseconds: plan.roundNanoseconds) : nil
        var theirs: [(String, Double)] = []
        for peer in try peers.get() {
            let milliseconds = max(5, plan.roundNanoseconds / 1_000_000)
            let answer = try peer.perform(setting.command(milliseconds: milliseconds))
            theirs.append((peer.name, answer.nanosecondsPerOperation))
        }
        let mine = first ?? ours(nanoseconds: plan.roundNanoseconds)
        try mine.requireAllCorrect("memory-hit")
        let samples = theirs.map { name, time in
            Sample.time("time_per_hit", mine.nanosecondsPerOperation, against: name, time)
        }
        return samples + [.allocations(mine.allocations, operations: mine.operations)]
    }

    func finish() async throws {
        shared.release()
        peers.made?.forEach { $0.finish() }
        peers.release()
    }

    private func ours(nanoseconds: UInt64) -> TimedLoop.Outcome {
        let fixture = shared.value
        switch setting.form {
        case .held, .same:
            return TimedLoop.run(threads: setting.threads, nanoseconds: nanoseconds) {
                fixture.hitsByHash(thread: $0, chunk: $1)
            }
        case .inPlace:
            return TimedLoop.run(threads: setting.threads, nanoseconds: nanoseconds) {
                fixture.hitsInPlace(thread: $0, chunk: $1)
            }
        case .parsed:
            return TimedLoop.run(threads: setting.threads, nanoseconds: nanoseconds) {
                fixture.hits(thread: $0, chunk: $1)
            }
        }
    }
}

extension Sample {
    /// The nanoseconds of one operation, with a peer's as the reference.
    static func time(
        _ quantity: String,
        _ nanoseconds: Double,
        against peer: String,
        _ theirs: Double
    ) -> Sample {
        var sample = Sample.time(quantity, nanoseconds)
        sample.reference = Reference(peer: peer, value: theirs)
        return sample
    }
}
