import Synchronization

/// The disk space that one shard uses and may use.
///
/// Space is reserved before a file grows and released after it is unlinked.
///
/// Bodies leave room for the log: without a segment no queued record could be written, so no body
/// could be dropped either.
///
/// Invariant: `usedBytes <= capacityBytes`, except after an opening, and after the capacity was
/// lowered, until the shard has shrunk.
final class DiskLedger: Sendable {
    struct Balance: Sendable {
        var capacityBytes: Int
        /// The bytes that only the log may use.
        let logBytesMin: Int
        /// The bytes that the log may use at most.
        let logBytesMax: Int
        var segmentBytes = 0
        var bodyBytes = 0
        /// The bytes of segment files that this process can neither open nor unlink.
        ///
        /// The log does not use them, so it keeps its least room beside them.
        var foreignBytes = 0

        var usedBytes: Int { segmentBytes + bodyBytes + foreignBytes }
        var freeBytes: Int { capacityBytes - usedBytes }
        var freeForBodiesBytes: Int { freeBytes - max(0, logBytesMin - segmentBytes) }
        var freeForLogBytes: Int { logBytesMax - segmentBytes }
    }

    private let state: Mutex<Balance>

    init(capacityBytes: Int, logBytesMin: Int, logBytesMax: Int) {
        state = Mutex(
            Balance(
                capacityBytes: capacityBytes,
                logBytesMin: logBytesMin,
                logBytesMax: logBytesMax
            )
        )
    }

    var balance: Balance { state.withLock { $0 } }

    func setCapacity(_ bytes: Int) { state.withLock { $0.capacityBytes = bytes } }

    func reserveSegment(_ bytes: Int) -> Bool {
        state.withLock { balance in
            guard balance.freeForLogBytes >= bytes || Mutant.takesEveryFile.isOn else {
                return false
            }
            guard balance.freeBytes >= bytes || Mutant.overdrawsTheDisk.isOn else { return false }
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

    /// Counts an existing file, even if it exceeds the capacity.
    func addExisting(segmentBytes: Int = 0, bodyBytes: Int = 0, foreignBytes: Int = 0) {
        state.withLock { balance in
            balance.segmentBytes += segmentBytes
            balance.bodyBytes += bodyBytes
            balance.foreignBytes += foreignBytes
        }
    }

    func releaseSegment(_ bytes: Int) {
        state.withLock { balance in
            assert(balance.segmentBytes >= bytes, "released only if reserved")
            balance.segmentBytes -= bytes
        }
    }

    func releaseBody(_ bytes: Int) {
        state.withLock { balance in
            assert(bytes >= 0 && balance.bodyBytes >= bytes, "released only if reserved")
            balance.bodyBytes -= bytes
        }
    }

    func releaseForeign(_ bytes: Int) {
        state.withLock { balance in
            assert(balance.foreignBytes >= bytes, "released only if counted")
            balance.foreignBytes -= bytes
        }
    }

    /// The space that a body file of this length occupies, in whole pages.
    static func bodyFileBytes(_ fileBytes: Int) -> Int {
        (fileBytes + pageBytes - 1) & ~(pageBytes - 1)
    }

    /// The most space that the file of a body of this length occupies.
    static func bodyFileBytesMax(rawCount: Int) -> Int {
        let table = BodyCodec.blockCount(rawCount) * BodyFileFormat.Block.sizeBytes
        return bodyFileBytes(BodyFileFormat.headerBytes + rawCount + table)
    }
}
