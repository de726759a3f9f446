import CacheTestSupport
import Testing

@testable import CacheEngine

/// What a disk tier may answer: slow, obvious, and never wrong about what is illegal.
///
/// A key's value is a version number or nothing. Nothing is always legal: a cache may forget.
struct DiskModel {
    struct Value: Hashable {
        var version: Int
        var tags: Set<String>
        var isSession: Bool
        var createdSeconds: Int64
        var expiresSeconds: Int64
    }

    /// The values a read may give now.
    private(set) var possible: [Int: Set<Value>] = [:]
    /// The values a read may give after a kill: all since the key's last durable state.
    private(set) var afterKill: [Int: Set<Value>] = [:]
    /// Every value a key ever had: what even a broken device must not go beyond.
    private(set) var ever: [Int: Set<Value>] = [:]

    mutating func store(_ key: Int, _ value: Value) {
        possible[key] = [value]
        afterKill[key, default: []].insert(value)
        ever[key, default: []].insert(value)
    }

    mutating func remove(_ key: Int) { possible[key] = [] }

    /// Everything so far has reached the disk.
    mutating func noteDurable() { afterKill = possible }

    /// Everything about one key has reached the disk.
    mutating func noteDurable(_ key: Int) { afterKill[key] = possible[key] }

    /// A removal of many was acknowledged: it is durable, and so is all before it.
    mutating func purge(_ scope: RemovalScope, isAcknowledged: Bool) {
        for (key, values) in possible {
            possible[key] = values.filter { !Self.covers(scope, $0) }
        }
        if isAcknowledged { noteDurable() }
    }

    /// A removal of many failed half-way: what it covers may be there or not.
    mutating func purgeFailed() {}

    mutating func reopenAfterKill() {
        possible = afterKill
        endSession()
    }

    mutating func reopenAfterClose() {
        endSession()
        noteDurable()
    }

    private mutating func endSession() {
        for (key, values) in possible { possible[key] = values.filter { !$0.isSession } }
        // The removal of the session is queued, no more: until it is written, the next opening
        // does it again.
        afterKill = possible
    }

    func allows(_ version: Int?, for key: Int, nowSeconds: Int64) -> Bool {
        guard let version else { return true }
        return (possible[key] ?? []).contains {
            $0.version == version && $0.expiresSeconds > nowSeconds
        }
    }

    func wasEver(_ version: Int?, for key: Int) -> Bool {
        guard let version else { return true }
        return (ever[key] ?? []).contains { $0.version == version }
    }

    private static func covers(_ scope: RemovalScope, _ value: Value) -> Bool {
        switch scope {
        case .everything: true
        case .tag(let tag): value.tags.contains(tag)
        case .storageClass(let kept): kept == (value.isSession ? .session : .permanent)
        case .storedAfter(let seconds): value.createdSeconds >= seconds
        case .storedBefore(let seconds): value.createdSeconds < seconds
        }
    }
}
