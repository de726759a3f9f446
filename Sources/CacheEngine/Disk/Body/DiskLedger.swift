import Synchronization

/// What one shard's files take and may take: asked before a file grows, told when one has gone.
///
/// Bodies leave room for the log: without a segment nothing that is queued could be written, and so
/// none of its bodies dropped.
///
/// Invariant: `segmentBytes + bodyBytes <= capacityBytes`, except right after the capacity was
/// lowered, until the shard has made itself smaller.
final class DiskLedger: Sendable {
    struct Balance: Sendable {
        var capacityBytes: Int
        /// What the log may always take.
        let logBytesMin: Int
        var segmentBytes = 0
        var bodyBytes = 0

        var usedBytes: Int { segmentBytes + bodyBytes }
        var freeBytes: Int { capacityBytes - usedBytes }
        var freeForBodiesBytes: Int { freeBytes - max(0, logBytesMin - segmentBytes) }
    }

    private let state: Mutex<Balance>

    init(capacityBytes: Int, logBytesMin: Int) {
        state = Mutex(Balance(capacityBytes: capacityBytes, logBytesMin: logBytesMin))
    }

    var balance: Balance { state.withLock { $0 } }

    func setCapacity(_ bytes: Int) { state.withLock { $0.capacityBytes = bytes } }

    func reserveSegment(_ bytes: Int) -> Bool {
        state.withLock { balance in
            guard balance.freeBytes >= bytes else { return false }
            balance.segmentBytes += bytes
            return true
        }
    }

    func reserveBody(_ bytes: Int) -> Bool {
        state.withLock { balance in
            guard balance.freeForBodiesBytes >= bytes else { return false }
            balance.bodyBytes += bytes
            return true
        }
    }

    /// Counts a file that is there already, whether it fits or not.
    func addExisting(segmentBytes: Int = 0, bodyBytes: Int = 0) {
        state.withLock { balance in
            balance.segmentBytes += segmentBytes
            balance.bodyBytes += bodyBytes
        }
    }

    func releaseSegment(_ bytes: Int) { state.withLock { $0.segmentBytes -= bytes } }
    func releaseBody(_ bytes: Int) { state.withLock { $0.bodyBytes -= bytes } }

    /// What a body file of that length occupies, in whole pages.
    static func bodyFileBytes(_ fileBytes: Int) -> Int {
        (fileBytes + pageBytes - 1) & ~(pageBytes - 1)
    }
}
