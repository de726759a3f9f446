package import CacheTestSupport
package import RESP
import Synchronization

/// A model of a Redis server and its replica, with the faults of both.
///
/// The replica is a copy of the master's data at an earlier moment. A failover makes it the master,
/// and so drops the end of what the old one had; the old one may go on serving some connections for
/// a while.
package final class ModelRedis: Sendable {
    /// One server: its data, its identity, and the scripts that it has seen.
    struct Node: Sendable {
        var data = ModelData()
        /// Drawn when the process starts.
        var runID: String
        /// Drawn when the server becomes the master.
        var replicationID = ModelRedis.runID(1)
        var scripts: Set<String> = []
    }

    /// The errors with which the server replies.
    package struct Mood: Hashable, Sendable {
        package var isLoading = false
        package var isFull = false
        package var isReadOnly = false
        package init() {}
    }

    private struct State {
        var master = Node(runID: ModelRedis.runID(1))
        var replica = ModelData()
        var deposed: Node?
        /// The run ID of the master before the last failover.
        var formerRunID = ModelRedis.runID(1)
        /// The number of failovers.
        var generation = 0
        var mood = Mood()
        var shiftMicroseconds: Int64 = 0
        /// The tasks that wait for the next entry of the log, by their numbers.
        var sleepers: [Int: Task<Void, Never>] = [:]
        private var nextNumber = 2

        /// A number that was not used before.
        mutating func takeNumber() -> Int {
            defer { nextNumber += 1 }
            return nextNumber
        }
    }

    private let clock: TestClock
    private let replicas: Int
    private let state = Mutex(State())
    /// Called with each purge that a server appends.
    private let onAppend: @Sendable (AppendedPurge) -> Void

    package convenience init(_ clock: TestClock, replicas: Int = 1) {
        self.init(clock, replicas: replicas) { _ in }
    }

    init(
        _ clock: TestClock,
        replicas: Int = 1,
        onAppend: @escaping @Sendable (AppendedPurge) -> Void
    ) {
        self.clock = clock
        self.replicas = replicas
        self.onAppend = onAppend
    }

    /// 40 hexadecimal digits.
    private static func runID(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 40 - digits.count) + digits
    }

    // MARK: Commands

    /// Runs one command on the master, or on the old master.
    package func run(_ words: [[UInt8]], onDeposed: Bool = false) -> RESPValue {
        let (reply, purge) = state.withLock { state -> (RESPValue, AppendedPurge?) in
            let (mood, now) = (state.mood, nowMicroseconds(state))
            // Moved, because a copy of a long log takes long.
            guard onDeposed, var deposed = state.deposed.take() else {
                return run(words, on: &state.master, mood, now)
            }
            defer { state.deposed = deposed }
            return run(words, on: &deposed, mood, now)
        }
        guard let purge else { return reply }
        onAppend(purge)
        wakeReaders()
        return reply
    }

    /// Runs a command at the given time in microseconds; also returns the purge that it appended.
    private func run(
        _ words: [[UInt8]],
        on node: inout Node,
        _ mood: Mood,
        _ now: Int64
    ) -> (RESPValue, AppendedPurge?) {
        var mood = mood
        // A replica ignores its limit of memory.
        if mood.isReadOnly { mood.isFull = false }
        if mood.isLoading {
            return (.error("LOADING Redis is loading the dataset in memory"), nil)
        }
        let name = words.first.map { String(decoding: $0, as: UTF8.self).uppercased() } ?? ""
        guard name == "EVAL" || name == "EVALSHA" else {
            if mood.isFull, ModelData.growing.contains(name) {
                return (.error("OOM command not allowed when used memory > 'maxmemory'."), nil)
            }
            if mood.isReadOnly, ModelData.writing.contains(name) {
                return (.error("READONLY You can't write against a read only replica."), nil)
            }
            return (node.data.run(words, nowMicroseconds: now), nil)
        }
        guard let script = ModelScript(words) else {
            return (.error("ERR the model knows no such script"), nil)
        }
        guard name == "EVAL" || node.scripts.contains(script.digest) else {
            return (.error("NOSCRIPT No matching script. Please use EVAL."), nil)
        }
        node.scripts.insert(script.digest)
        let server = ModelScript.Server(
            runID: node.runID,
            replicationID: node.replicationID,
            replicas: replicas,
            isFull: mood.isFull,
            isReadOnly: mood.isReadOnly,
            nowMilliseconds: now / 1_000
        )
        let count = node.data.appended.count
        let reply = script.run(on: &node.data, server)
        return (reply, node.data.appended.count > count ? node.data.appended.last : nil)
    }

    private func nowMicroseconds(_ state: State) -> Int64 {
        1_700_000_000_000_000 + Int64(clock.monotonicNanoseconds / 1_000) + state.shiftMicroseconds
    }

    // MARK: Waiting for entries

    /// Waits for the next entry of the log or a fault of the connections, for at most that time.
    func waitForEntry(_ nanoseconds: UInt64, on executor: SeededExecutor) async {
        let sleeper = executor.start { [clock] in
            _ = try? await clock.sleep(nanoseconds: nanoseconds)
        }
        let number = state.withLock { state in
            let number = state.takeNumber()
            state.sleepers[number] = sleeper
            return number
        }
        await withTaskCancellationHandler {
            await sleeper.value
        } onCancel: {
            sleeper.cancel()
        }
        state.withLock { _ = $0.sleepers.removeValue(forKey: number) }
    }

    func wakeReaders() {
        let sleepers = state.withLock { $0.sleepers.sorted { $0.key < $1.key } }
        for (_, sleeper) in sleepers { sleeper.cancel() }
    }
}

// MARK: - Faults

extension ModelRedis {
    /// The number of failovers; connections to an earlier master end.
    var generation: Int { state.withLock { $0.generation } }

    var hasDeposed: Bool { state.withLock { $0.deposed != nil } }

    /// The purges that the log has had; those of a lost end are not among them.
    var history: [AppendedPurge] { state.withLock { $0.master.data.appended } }

    /// The identity of the log.
    var incarnation: [UInt8]? {
        state.withLock { state in
            state.master.data.items.values.lazy.compactMap { item -> [UInt8]? in
                guard case .hash(let fields) = item.content else { return nil }
                return fields["inc"]
            }
            .first
        }
    }

    /// Whether the log still has the entry at that position.
    func isInLog(_ position: ModelStreamID) -> Bool {
        state.withLock { state in
            state.master.data.items.values.contains { item in
                guard case .stream(let stream) = item.content else { return false }
                return stream.entry(at: position) != nil
            }
        }
    }

    package var mood: Mood {
        get { state.withLock { $0.mood } }
        set {
            state.withLock { state in
                // A replica that may write again was promoted.
                if state.mood.isReadOnly, !newValue.isReadOnly {
                    state.master.replicationID = Self.runID(state.takeNumber())
                }
                state.mood = newValue
            }
        }
    }

    /// The replica gets everything that the master has.
    func replicate() { state.withLock { $0.replica = $0.master.data } }

    /// The replica becomes the master; the old one may serve on.
    ///
    /// If `formerReturns`, the replica is the process that was the master before, with the data of the
    /// one that is.
    func failOver(oldServesOn: Bool, formerReturns: Bool = false) {
        state.withLock { state in
            let former = state.formerRunID
            state.formerRunID = state.master.runID
            state.deposed = oldServesOn ? state.master : nil
            let id = Self.runID(state.takeNumber())
            state.master = Node(
                data: state.replica,
                runID: formerReturns ? former : id,
                replicationID: id
            )
            state.generation += 1
        }
        wakeReaders()
    }

    /// The master is restarted, with its data.
    func restart() {
        replicate()
        failOver(oldServesOn: false)
    }

    /// The old master is gone for good.
    func endDeposed() { state.withLock { $0.deposed = nil } }

    /// The server's clock jumps.
    func shiftClock(bySeconds seconds: Int64) {
        state.withLock { $0.shiftMicroseconds += seconds * 1_000_000 }
    }

    package func forgetScripts() { state.withLock { $0.master.scripts = [] } }

    package func flush() { change { $0.items = [:] } }

    /// Removes the item that `choose` picks among those whose key `isConcerned`, by its number.
    func evict(
        where isConcerned: @Sendable (String) -> Bool,
        _ choose: (Int) -> Int
    ) {
        change { data in
            let keys = data.items.filter { isConcerned($0.key) }
                .sorted { $0.value.number < $1.value.number }.map(\.key)
            guard !keys.isEmpty else { return }
            data.items[keys[choose(keys.count)]] = nil
        }
    }

    /// Removes the oldest entries of every stream beyond that number.
    package func trim(to count: Int) {
        change { data in
            for (key, item) in data.items {
                guard case .stream(var stream) = item.content else { continue }
                stream.entries.removeFirst(max(0, stream.entries.count - count))
                data.items[key]?.content = .stream(stream)
            }
        }
    }

    private func change(_ body: (inout ModelData) -> Void) {
        state.withLock { body(&$0.master.data) }
    }
}
