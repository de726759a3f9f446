internal import RESP

/// The events on the connections of a client, or on one of them.
package struct RedisCounts: Hashable, Sendable {
    /// Commands without an outcome so far.
    package var waiting = 0
    /// Commands with a reply, error replies included.
    package var replies = 0
    /// Commands that ended without a reply after they were accepted.
    package var failures = 0
    /// Commands refused because too many waited.
    package var refusedByLimits = 0
    /// Commands refused because the breaker was open.
    package var refusedByBreaker = 0
    /// Connections that were made.
    package var connections = 0
    /// Times that a breaker opened.
    package var openings = 0
    /// MOVED and ASK replies that were followed.
    package var redirections = 0
    /// Questions for the servers of a cluster, or for the master.
    package var refreshes = 0

    package init() {}

    package static func + (one: RedisCounts, other: RedisCounts) -> RedisCounts {
        var sum = one
        sum.waiting += other.waiting
        sum.replies += other.replies
        sum.failures += other.failures
        sum.refusedByLimits += other.refusedByLimits
        sum.refusedByBreaker += other.refusedByBreaker
        sum.connections += other.connections
        sum.openings += other.openings
        sum.redirections += other.redirections
        sum.refreshes += other.refreshes
        return sum
    }
}

/// The commands that one connection may take: a pure value, asked before anything is queued.
///
/// Invariants:
/// 1. `0 <= count <= countMax`, and `0 <= bytes <= bytesMax`.
struct CommandAdmission: Sendable {
    let address: NodeAddress
    let countMax: Int
    let bytesMax: Int
    private(set) var count = 0
    private(set) var bytes = 0
    var counts = RedisCounts()
    /// The failure that opened the breaker; `nil` if it is closed.
    var suspension: RedisError?
    /// Whether a command was refused because of it.
    private var wasAsked = false

    init(_ address: NodeAddress, _ options: RedisOptions) {
        self.address = address
        countMax = options.outstandingCountMax
        bytesMax = options.outstandingBytesMax
    }

    /// The counts, with the commands that wait.
    var countsNow: RedisCounts {
        var counts = counts
        counts.waiting = count
        return counts
    }

    /// Whether commands were refused since the last call: the server is still wanted.
    mutating func takeWish() -> Bool {
        defer { wasAsked = false }
        return wasAsked
    }

    /// The connection is forgotten: returns its counts, which are added up elsewhere.
    mutating func retire() -> RedisCounts {
        defer {
            counts = RedisCounts()
            suspension = nil
        }
        return counts
    }

    /// Takes room for a batch; returns the reason to refuse it.
    mutating func admit(_ batch: Batch) -> RedisError? {
        if let suspension {
            counts.refusedByBreaker += batch.count
            wasAsked = true
            let detail = "The server \(address) is suspended after failures: \(suspension.detail)"
            return RedisError(.suspended, detail: detail)
        }
        let fits = batch.count <= countMax - count && batch.bytes.count <= bytesMax - bytes
        guard fits || Mutant.admitsAnyNumber.isOn else {
            counts.refusedByLimits += batch.count
            return RedisError(
                .overloaded,
                detail: "The server \(address) owes \(count) replies to \(bytes) bytes; "
                    + "\(batch.count) commands of \(batch.bytes.count) bytes exceed the limits"
            )
        }
        count += batch.count
        bytes += batch.bytes.count
        return nil
    }

    /// Gives back the room of a batch.
    mutating func release(_ batch: Batch) {
        count -= batch.count
        bytes -= batch.bytes.count
    }

    /// Gives back the room of a finished batch, and counts its commands.
    mutating func release(_ finished: NodeConnection.Finished) {
        release(finished.batch)
        switch finished.outcome {
        case .success: counts.replies += finished.batch.count
        case .failure: counts.failures += finished.batch.count
        }
    }
}
