import Platform

/// The operations of one key, and their results for waiters.
extension StoreBacklog {
    enum Operation: Sendable {
        case store(StoredEntry)
        case remove(StoreKey)

        var queuedBytes: Int {
            switch self {
            case .store(let entry): entry.entry.sizeBytes
            case .remove: 0
            }
        }

        var isRemoval: Bool {
            switch self {
            case .store: false
            case .remove: true
            }
        }
    }

    /// An operation with its place in the order of all.
    struct Numbered: Sendable {
        var operation: Operation
        let number: UInt64
    }

    /// An operation to carry out now.
    struct Start: Sendable {
        let hash: KeyHash
        let operation: Operation
    }

    /// A caller that waits, and its result.
    struct Told {
        let settlement: Settlement
        let error: (any Error)?

        func tell() { settlement.settle(error) }
    }

    /// The ways in which a key may be read.
    enum Reading {
        case entry(StoredEntry)
        case absent
        case behind
    }

    struct Record {
        let key: StoreKey
        var waiting: Numbered?
        var running: Numbered?
        var isLost = false
        var isReady = false
        /// The entry in the store may be outdated and is not read.
        var isBarred = false
        var failures = 0
        var lastError: (any Error)?
        /// The time at which the waiting operation may start.
        var dueNanoseconds: UInt64 = 0
        var watchers: [(number: UInt64, settlement: Settlement)] = []
    }
}

extension StoreBacklog.Record {
    /// Whether an operation waits for its time.
    var isPutOff: Bool { waiting != nil && running == nil && !isReady }
}

extension StoreLimits {
    /// The delay before the next attempt, after that many failures.
    func retryNanoseconds(afterFailures failures: Int) -> UInt64 {
        let doublings = Double(1 << max(0, min(failures - 1, 30)))
        let seconds = min(minimumRetryDelay.seconds * doublings, maximumRetryDelay.seconds)
        return UInt64(nanosecondsIn: max(0.01, seconds))
    }
}
