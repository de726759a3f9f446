import Synchronization

/// The one budget of all shards.
///
/// Invariant: the bytes in use do not exceed the capacity while it stays the same, except for entries
/// that were replaced, until their readers have left. After it shrinks, `setCapacity` restores the
/// invariant before it returns, and a store that is under way restores it before it returns.
final class UsedBytes: Sendable {
    private let used = Atomic(0)
    /// The part of `used` that belongs to retired entries.
    private let pending = Atomic(0)
    private let shared: SharedPolicyState

    init(_ shared: SharedPolicyState) { self.shared = shared }

    var current: Int { used.load(ordering: .relaxed) }
    /// The bytes of retired entries that are not released yet.
    var pendingBytes: Int { pending.load(ordering: .relaxed) }
    var capacity: Int { shared.capacityBytes.load(ordering: .relaxed) }

    /// Bytes that may be retired but not released before a writer waits for readers.
    var slackBytes: Int { min(capacity / 256, 1 << 20) }

    /// Bytes that would have to leave the tables to make room for `bytes` more.
    ///
    /// In this order no sum exceeds the largest number, which the capacity and `bytes` may be.
    func excess(with bytes: Int) -> Int {
        current - pendingBytes - (capacity - bytes)
    }

    /// The answer to a request for bytes.
    enum Taking {
        case taken
        /// The bytes fit once the retired entries are released.
        case mustRelease
        /// An entry must leave a table first.
        case mustEvict
    }

    /// Takes `bytes` if they fit.
    ///
    /// Retired entries have left their table already, so they are no reason to evict more.
    func take(_ bytes: Int) -> Taking {
        var now = used.load(ordering: .relaxed)
        while true {
            if now - pendingBytes + bytes > linkedBytesMax(for: bytes) {
                return .mustEvict
            }
            guard now + bytes <= capacity else { return .mustRelease }
            let (done, current) = used.compareExchange(
                expected: now,
                desired: now + bytes,
                ordering: .relaxed
            )
            if done { return .taken }
            now = current
        }
    }

    /// Takes `bytes` even if they do not fit, for state that a memory cannot do without.
    func takeAnyway(_ bytes: Int) {
        assert(bytes >= 0, "bytes are given back by `giveBack`")
        used.add(bytes, ordering: .relaxed)
    }

    func giveBack(_ bytes: Int) {
        assert(bytes >= 0, "bytes are taken by `take`")
        let rest = used.subtract(bytes, ordering: .relaxed).newValue
        assert(rest >= 0, "only bytes that were taken are given back")
    }

    /// Notes that `bytes` of those in use have left their table and will be given back.
    func notePending(_ bytes: Int) { pending.add(bytes, ordering: .relaxed) }

    func givePendingBack(_ bytes: Int) {
        giveBack(bytes)
        let rest = pending.subtract(bytes, ordering: .relaxed).newValue
        assert(rest >= 0, "only noted bytes are given back")
    }

    /// The bytes that the tables may hold once they hold `bytes` more.
    ///
    /// Small entries leave room for several retired entries. Where one entry alone would fill that
    /// room, leaving it would gain nothing.
    private func linkedBytesMax(for bytes: Int) -> Int {
        bytes <= slackBytes ? capacity - slackBytes : capacity
    }
}
