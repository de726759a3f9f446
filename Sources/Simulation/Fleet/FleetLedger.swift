import CacheTestSupport
import Synchronization

/// The facts of a simulated fleet: the responses of the origin, the purges, and which machine has
/// which of them, in the order of their moments.
///
/// It judges every answer by the promises (a) to (d) of `docs/fleet.md`, and knows nothing of how a
/// cache, the log or the shared store works.
final class FleetLedger: Sendable {
    /// A purge in the log.
    struct LogPurge: Sendable {
        let scope: FleetScope
        let incarnation: [UInt8]
        /// When a server appended it first.
        let appendedAt: Int
        /// Where servers appended it, and when: a machine sends it again if it may be lost.
        var places: [ModelStreamID: Int] = [:]
    }

    /// One process of a machine.
    struct Process: Sendable {
        let machine: Int
        var isAlive = true
        /// The purges that it has read in the log, and when.
        var applied: [[UInt8]: Int] = [:]
        /// Purges that a machine with a disk had applied before this process.
        var inherited: Set<[UInt8]> = []
    }

    struct State: Sendable {
        var moment = 0
        var contents: [FleetContent] = []
        var logPurges: [[UInt8]: LogPurge] = [:]
        /// The processes that sent purges to the log first.
        var senders: [[UInt8]: Int] = [:]
        var ownPurges: [OwnPurge] = []
        var processes: [Process] = []
        var problems: [String] = []
        var answers = 0
        var isCalm = false
        var story: [String] = []
    }

    /// Whether the ages and the unsafe methods can be judged: the clock of the server does not jump,
    /// and Redis keeps what it has.
    let judgesAges: Bool
    let judgesUnsafeMethods: Bool
    let clock: TestClock
    let state = Mutex(State())
    private let tellsStory: Bool

    init(
        _ clock: TestClock,
        judgesAges: Bool,
        judgesUnsafeMethods: Bool,
        tellsStory: Bool
    ) {
        self.clock = clock
        self.tellsStory = tellsStory
        self.judgesAges = judgesAges
        self.judgesUnsafeMethods = judgesUnsafeMethods
    }

    /// Returns the next moment; no two events share one.
    @discardableResult
    func tick() -> Int { state.withLock { $0.tick() } }

    /// Writes an event down, if the story of this life is wanted.
    func tell(_ event: @autoclosure () -> String) {
        guard tellsStory else { return }
        let milliseconds = clock.monotonicNanoseconds / 1_000_000
        let line = "\(milliseconds) ms: \(event())"
        state.withLock { $0.story.append("\($0.moment) \(line)") }
    }

    var story: [String] { state.withLock { $0.story } }
    var problems: [String] { state.withLock { $0.problems } }
    var answers: Int { state.withLock { $0.answers } }
    func report(_ problem: String) { state.withLock { $0.problems.append(problem) } }

    var isCalm: Bool { state.withLock { $0.isCalm } }
    func calmDown() { state.withLock { $0.isCalm = true } }

    // MARK: The origin

    func add(
        _ path: FleetPath,
        _ language: String,
        caller: String,
        at moment: Int,
        _ seconds: Int64,
        isBroken: Bool
    ) -> FleetContent {
        state.withLock { state in
            let content = FleetContent(
                serial: state.contents.count,
                path: path,
                language: language,
                caller: caller,
                isBroken: isBroken,
                askedAt: [moment: seconds]
            )
            state.contents.append(content)
            return content
        }
    }

    /// The last response that the origin may confirm.
    func latest(_ path: FleetPath, _ language: String) -> FleetContent? {
        state.withLock { state in
            state.contents.last { $0.path == path && $0.language == language && !$0.isBroken }
        }
    }

    func confirm(_ serial: Int, at moment: Int, _ seconds: Int64) {
        state.withLock { $0.contents[serial].askedAt[moment] = seconds }
    }

    // MARK: The machines

    /// A process begins; `heir` says whether it has the disk of the process before.
    func begin(machine: Int, heir: Bool, _ history: [AppendedPurge]) -> Int {
        tell("machine \(machine) starts a process")
        return state.withLock { state in
            var process = Process(machine: machine)
            if heir, let before = state.processes.last(where: { $0.machine == machine }) {
                process.inherited = before.inherited.union(before.applied.keys)
                let receipts = state.ownPurges.filter {
                    $0.ended != nil && state.processes[$0.process].machine == machine
                }
                process.inherited.formUnion(receipts.compactMap(\.id))
                process.inherited.formIntersection(history.map(\.id))
            }
            state.processes.append(process)
            return state.processes.count - 1
        }
    }

    func end(process: Int) {
        tell("process \(process) ends")
        state.withLock { $0.processes[process].isAlive = false }
    }

    /// The process has applied these purges of the log.
    func applied(_ ids: [[UInt8]], by process: Int) {
        guard !ids.isEmpty else { return }
        tell("process \(process) has applied \(ids.map(FleetScope.name))")
        state.withLock { state in
            let moment = state.tick()
            for id in ids where state.processes[process].applied[id] == nil {
                state.processes[process].applied[id] = moment
            }
        }
    }

    // MARK: Purges

    /// A process sends purges to the log.
    func offered(_ ids: [[UInt8]], by process: Int) {
        state.withLock { state in
            for id in ids where state.senders[id] == nil { state.senders[id] = process }
        }
    }

    func appended(_ purge: AppendedPurge) {
        let name = FleetScope.name(purge.id)
        tell("appended \(name) at \(purge.position.text), \(FleetScope(purge))")
        state.withLock { state in
            let moment = state.tick()
            let new = LogPurge(
                scope: FleetScope(purge),
                incarnation: purge.incarnation,
                appendedAt: moment
            )
            state.logPurges[purge.id, default: new].places[purge.position] = moment
        }
    }

    /// The end of the log was lost: machines that are started anew know nothing of it.
    func lost(except history: [AppendedPurge]) {
        let kept = Set(history.map(\.id))
        tell("a failover, the log ends at \(history.last?.position.text ?? "nothing")")
        state.withLock { state in
            for index in state.processes.indices {
                state.processes[index].inherited.formIntersection(kept)
            }
        }
    }

    func beginPurge(_ scope: FleetScope, by process: Int, isUnsafeMethod: Bool = false) -> Int {
        tell("process \(process) purges \(scope), unsafe method: \(isUnsafeMethod)")
        return state.withLock { state in
            let began = state.tick()
            state.ownPurges.append(
                OwnPurge(
                    process: process,
                    scope: scope,
                    began: began,
                    isUnsafeMethod: isUnsafeMethod
                )
            )
            return state.ownPurges.count - 1
        }
    }

    /// The machine has applied the purge; `position` is that of its receipt.
    func endPurge(_ number: Int, receipt position: ModelStreamID?) {
        tell("purge \(number) has a receipt for \(position?.text ?? "nothing")")
        state.withLock { state in
            state.ownPurges[number].ended = state.tick()
            guard let position else { return }
            let purge = state.ownPurges[number]
            // A log that was begun anew may have another purge at the same position.
            let appended = state.logPurges.filter { state.senders[$0.key] == purge.process }
                .compactMapValues { $0.places[position] }
            let last = appended.max { $0.value < $1.value }
            state.ownPurges[number].id = last.flatMap { $0.value > purge.began ? $0.key : nil }
        }
    }
}

extension FleetLedger.State {
    mutating func tick() -> Int {
        moment += 1
        return moment
    }
}
