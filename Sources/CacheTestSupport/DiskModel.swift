package import CacheEngine

/// A model of the results that a disk tier may give: slow and simple, and exact about illegal ones.
///
/// A key's value is a version number or nothing. Nothing is always legal, because a cache may drop
/// entries.
package struct DiskModel: Sendable {
    package struct Value: Hashable, Sendable {
        package var version: Int
        package var tags: Set<String>
        package var isSession: Bool
        package var createdSeconds: Int64

        package init(
            version: Int,
            tags: Set<String>,
            isSession: Bool,
            createdSeconds: Int64
        ) {
            self.version = version
            self.tags = tags
            self.isSession = isSession
            self.createdSeconds = createdSeconds
        }
    }

    /// The values that a read may return now.
    private var possible: [Int: Set<Value>] = [:]
    /// The values that a read may return after a kill: all since the key's last durable state.
    private var afterKill: [Int: Set<Value>] = [:]
    /// All values that a key ever had; even a broken device must not return any other.
    private var ever: [Int: Set<Value>] = [:]
    /// Keys that had a value in their last durable state and have not been removed since.
    private var kept: Set<Int> = []
    /// Keys that were missing when the tier was opened; no later flush restores their old values.
    private var absent: Set<Int> = []
    /// The last value stored for each key since its last durable state.
    private var last: [Int: Value] = [:]

    package init() {}

    package mutating func store(_ key: Int, _ value: Value) {
        possible[key] = [value]
        afterKill[key, default: []].insert(value)
        ever[key, default: []].insert(value)
        absent.remove(key)
        last[key] = value
    }

    package mutating func remove(_ key: Int) {
        possible[key] = []
        kept.remove(key)
        last[key] = nil
    }

    /// Records that every change so far has reached the disk.
    package mutating func noteDurable() {
        afterKill = possible
        kept = Set(possible.keys.filter { possible[$0] != [] }).subtracting(absent)
        last.removeAll()
    }

    /// Records that every change of one key has reached the disk.
    package mutating func noteDurable(_ key: Int) {
        afterKill[key] = possible[key]
        if possible[key, default: []].isEmpty { kept.remove(key) } else { kept.insert(key) }
        last[key] = nil
    }

    /// Records the removal of a scope.
    ///
    /// If the removal was acknowledged, it and all earlier changes are durable.
    package mutating func purge(_ scope: RemovalScope, isAcknowledged: Bool) {
        for (key, values) in possible {
            possible[key] = values.filter { !Self.covers(scope, $0) }
            if possible[key] == [] {
                kept.remove(key)
                last[key] = nil
            }
        }
        if isAcknowledged { noteDurable() }
    }

    /// Allows that the last store before a kill was refused, which removes the old value.
    package mutating func allowRefusal(of key: Int) { kept.remove(key) }

    /// Allows that a requested purge took effect, acknowledged or not.
    package mutating func allowPurge(of tag: String) {
        let touched = kept.filter { afterKill[$0, default: []].contains { $0.tags.contains(tag) } }
        kept.subtract(touched)
    }

    package mutating func reopenAfterKill() {
        possible = afterKill
        endSession()
    }

    package mutating func reopenAfterClose() {
        endSession()
        noteDurable()
    }

    /// Records a read after an opening, which determines the value of the key.
    package mutating func observe(_ version: Int?, for key: Int) {
        // A value that is missing now may still be on disk; only the other values are excluded.
        if let version {
            possible[key] = possible[key, default: []].filter { $0.version == version }
            kept.insert(key)
            absent.remove(key)
        } else {
            kept.remove(key)
            absent.insert(key)
        }
        afterKill[key] = possible[key]
        last[key] = nil
    }

    private mutating func endSession() {
        for (key, values) in possible {
            possible[key] = values.filter { !$0.isSession }
            if values.contains(where: \.isSession) { kept.remove(key) }
        }
        // The removal of session entries is only queued. Until it is written, the next opening
        // repeats it.
        afterKill = possible
    }

    package func allows(_ version: Int?, for key: Int) -> Bool {
        guard let version else { return true }
        return (possible[key] ?? []).contains { $0.version == version }
    }

    /// Whether a read may find nothing, in a tier that has had room for every entry.
    package func mayBeGone(_ key: Int) -> Bool {
        !kept.contains(key)
    }

    /// The last value stored, or `nil` if the key has become durable or been removed since.
    package func newest(_ key: Int) -> Value? { last[key] }

    package func wasEver(_ version: Int?, for key: Int) -> Bool {
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
