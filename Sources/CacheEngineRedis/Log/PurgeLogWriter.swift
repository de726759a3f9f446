import CacheEngine
import RESP
import RedisClient
import Synchronization

/// Appends purges to the log, and asks how many replicas have them.
///
/// The purges of callers that arrive while an exchange is under way travel together in the next one,
/// so that one wait for replicas serves all of them.
final class PurgeLogWriter: Sendable {
    /// The entries that the stream keeps at least.
    static let streamCountMin = 65_536
    /// The purges of one exchange.
    static let batchCountMax = 256
    /// The purges that wait for their exchange, about a second's work of a server whose replicas
    /// confirm in 50 ms; more are refused, and their callers know it.
    private static let waitingCountMax = 4_096
    /// The bytes of the purges that wait.
    private static let waitingBytesMax = 16 << 20
    /// The time for one exchange, with the connection and one more attempt.
    private static let limitNanoseconds: UInt64 = 1_000_000_000
    /// The time that the server waits for a replica.
    private static let replicaMilliseconds = 50
    /// The time between two attempts.
    private static let pauseNanoseconds: UInt64 = 50_000_000

    private typealias Outcome = Result<FleetReceipt, RedisError>

    /// The purges of one caller.
    private struct Job: Sendable {
        let purges: [FleetPurge]
        let bytes: Int
        let continuation: UnsafeContinuation<Outcome, Never>

        init(_ purges: [FleetPurge], _ continuation: UnsafeContinuation<Outcome, Never>) {
            self.purges = purges
            bytes = purges.reduce(0) { $0 + $1.sizeBytes }
            self.continuation = continuation
        }
    }

    /// The jobs that wait, in their order.
    ///
    /// Invariant: `count` and `bytes` are those of the purges in `jobs`, and within their limits
    /// unless the first job alone exceeds them.
    private struct State {
        private(set) var jobs: [Job] = []
        private var count = 0
        private var bytes = 0
        var isBusy = false

        /// Returns `false` if too much waits.
        mutating func add(_ job: Job) -> Bool {
            let fits =
                job.purges.count <= waitingCountMax - count && job.bytes <= waitingBytesMax - bytes
            // A job that is too large by itself would be refused however often it comes.
            let isAlone = jobs.isEmpty && !Mutant.refusesLongPurgesForEver.isOn
            guard fits || isAlone || Mutant.queuesAnyNumberOfPurges.isOn else { return false }
            jobs.append(job)
            count += job.purges.count
            bytes += job.bytes
            return true
        }

        /// Takes the jobs of the next exchange.
        mutating func next() -> [Job] {
            var taken = 0
            let next = jobs.prefix { job in
                defer { taken += job.purges.count }
                return taken == 0 || taken + job.purges.count <= batchCountMax
            }
            jobs.removeFirst(next.count)
            for job in next {
                count -= job.purges.count
                bytes -= job.bytes
            }
            assert(count >= 0 && bytes >= 0, "a job leaves once")
            return Array(next)
        }
    }

    private let client: any FleetServer
    private let surroundings: FleetSurroundings
    private let keys: LogKeys
    private let address: NodeAddress
    private let counts: FleetCounts
    private let state = Mutex(State())
    /// The replicas that were connected at the last reply.
    private let replicas = Atomic(0)

    init(
        _ client: any FleetServer,
        _ surroundings: FleetSurroundings,
        _ keys: LogKeys,
        at address: NodeAddress,
        _ counts: FleetCounts
    ) {
        self.client = client
        self.surroundings = surroundings
        self.keys = keys
        self.address = address
        self.counts = counts
    }

    /// A reader has asked for the number of replicas.
    func note(replicas count: Int) { replicas.store(count, ordering: .relaxed) }

    /// Appends purges; the receipt is that of the last one.
    func append(_ purges: [FleetPurge]) async throws(RedisError) -> FleetReceipt {
        let outcome = await withUnsafeContinuation { continuation in
            let job = Job(purges, continuation)
            let (isAdded, isFirst) = state.withLock { state in
                guard state.add(job) else { return (false, false) }
                defer { state.isBusy = true }
                return (true, !state.isBusy)
            }
            guard isAdded else { return continuation.resume(returning: .failure(overload)) }
            // A task of its own: the caller may leave, and its purge must still be sent whole.
            if isFirst { surroundings.start { await self.work() } }
        }
        switch outcome {
        case .success: counts.appended.count(purges.count)
        case .failure: counts.refused.count(purges.count)
        }
        return try outcome.get()
    }

    /// Sends what waits, until nothing does.
    private func work() async {
        while let jobs = nextJobs() {
            let purges = jobs.flatMap(\.purges)
            do throws(RedisError) {
                let receipts = try await sent(purges)
                var end = 0
                for job in jobs {
                    end += job.purges.count
                    job.continuation.resume(returning: .success(receipts[end - 1]))
                }
            } catch {
                for job in jobs { job.continuation.resume(returning: .failure(error)) }
            }
        }
    }

    private func nextJobs() -> [Job]? {
        state.withLock { state in
            let jobs = state.next()
            state.isBusy = !jobs.isEmpty
            return jobs.isEmpty ? nil : jobs
        }
    }

    private var overload: RedisError {
        let detail = "Too many purges of this machine wait for the server \(address)"
        return RedisError(.overloaded, detail: detail)
    }
}

// MARK: - One exchange

extension PurgeLogWriter {
    /// Appends purges, and tries again as long as the connection was cut, the server is no longer
    /// the master, one key of the log has moved to another server and the other has not, servers
    /// redirect to each other, or two servers took a part each.
    ///
    /// A purge that is appended twice has one identity and is applied once.
    private func sent(_ purges: [FleetPurge]) async throws(RedisError) -> [FleetReceipt] {
        let end = surroundings.nowNanoseconds + Self.limitNanoseconds
        while true {
            do throws(RedisError) { return try await exchange(purges, until: end) } catch {
                guard Self.mayPass(error.code),
                    surroundings.nowNanoseconds + Self.pauseNanoseconds < end
                else { throw error }
                try? await surroundings.clock.sleep(nanoseconds: Self.pauseNanoseconds)
            }
        }
    }

    /// Whether the next attempt may succeed after an error of this kind.
    private static func mayPass(_ code: RedisError.Code) -> Bool {
        switch code {
        case .cut, .readOnly, .masterUnknown: true
        case .tryAgain: !Mutant.givesUpPurgesThatAreMoved.isOn
        case .redirected: !Mutant.givesUpPurgesThatAreRedirected.isOn
        default: false
        }
    }

    private func exchange(
        _ purges: [FleetPurge],
        until end: UInt64
    ) async throws(RedisError) -> [FleetReceipt] {
        var wait = RESPCommand("WAIT")
        wait.add(replicas.load(ordering: .relaxed) > 0 ? 1 : 0)
        wait.add(Self.replicaMilliseconds)
        let replies = try await client.runScripts(
            by: Array(keys.meta.utf8),
            within: rest(until: end),
            lane: .appending
        ) { isWhole in purges.map { command(for: $0, isWhole: isWhole) } + [wait] }
        var receipts: [FleetReceipt] = []
        let confirmed = Int(replies[purges.count].integer ?? 0)
        for reply in replies.prefix(purges.count) {
            if case .error(let text) = reply { throw RedisError(reply: text, from: address) }
            guard let parts = reply.elements, parts.count == 2,
                let position = parts[0].text.flatMap({ FleetPosition($0) }),
                let connected = parts[1].integer
            else {
                throw RedisError(
                    .misbehaved,
                    detail: "The server \(address) sent an invalid reply to an append"
                )
            }
            replicas.store(Int(connected), ordering: .relaxed)
            // The server may be lost before the reader has seen the epoch.
            if !Mutant.forgetsEpochsOfReceipts.isOn {
                _ = counts.epoch.max(position.epoch, ordering: .relaxed)
            }
            receipts.append(
                FleetReceipt(
                    position: position.rawValue,
                    replicas: confirmed,
                    connectedReplicas: Int(connected)
                )
            )
        }
        guard Self.areOfOneServer(receipts) || Mutant.trustsPurgesOfTwoServers.isOn else {
            let detail = "The log was moved to another server while purges were appended"
            throw RedisError(.tryAgain, detail: detail)
        }
        return receipts
    }

    private func rest(until end: UInt64) -> Duration {
        let now = surroundings.nowNanoseconds
        return .nanoseconds(Int64(clamping: end > now ? end - now : 0))
    }

    /// Whether one server took all these purges; another one begins an epoch.
    ///
    /// Only the last server is asked for its replicas. The one before may have lost what it took.
    private static func areOfOneServer(_ receipts: [FleetReceipt]) -> Bool {
        let positions = receipts.map { FleetPosition(rawValue: $0.position) }
        return zip(positions, positions.dropFirst()).allSatisfy { earlier, later in
            earlier.epoch == later.epoch && earlier < later
        }
    }

    private func command(for purge: FleetPurge, isWhole: Bool) -> RESPCommand {
        FleetScript.append.command(
            keys.both,
            isWhole: isWhole,
            [
                FleetPurge.ID.random().bytes,
                Array(String(counts.epoch.load(ordering: .relaxed)).utf8),
                Array(String(Self.streamCountMin).utf8), purge.id.bytes, Array(purge.kind.utf8),
                Array(purge.scope.utf8), purge.value,
            ]
        )
    }
}
