package import CacheEngine

/// What a disk tier may answer: slow, obvious, and never wrong about what is illegal.
///
/// A key's value is a version number or nothing. Nothing is always legal: a cache may forget.
package struct DiskModel: Sendable {
    package struct Value: Hashable, Sendable {
        package var version: Int
        package var tags: Set<String>
        package var isSession: Bool
        package var createdSeconds: Int64
        package var expiresSeconds: Int64

        package init(
            version: Int,
            tags: Set<String>,
            isSession: Bool,
            createdSeconds: Int64,
            expiresSeconds: Int64
        ) {
            self.version = version
            self.tags = tags
            self.isSession = isSession
            self.createdSeconds = createdSeconds
            self.expiresSeconds = expiresSeconds
        }
    }

    /// The values a read may give now.
    private var possible: [Int: Set<Value>] = [:]
    /// The values a read may give after a kill: all since the key's last durable state.
    private var afterKill: [Int: Set<Value>] = [:]
    /// Every value a key ever had: what even a broken device must not go beyond.
    private var ever: [Int: Set<Value>] = [:]
    /// Keys that had a value in their last durable state, and were not removed since.
    private var kept: Set<Int> = []
    /// Keys that an opening did not find: no later flush makes their old values come back.
    private var absent: Set<Int> = []
    /// The last value given to each key since its last durable state.
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

    /// Everything so far has reached the disk.
    package mutating func noteDurable() {
        afterKill = possible
        kept = Set(possible.keys.filter { possible[$0] != [] }).subtracting(absent)
        last.removeAll()
    }

    /// Everything about one key has reached the disk.
    package mutating func noteDurable(_ key: Int) {
        afterKill[key] = possible[key]
        if possible[key, default: []].isEmpty { kept.remove(key) } else { kept.insert(key) }
        last[key] = nil
    }

    /// A removal of many: when it was acknowledged it is durable, and so is all before it.
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

    /// The last store before a kill may have been refused, which removes what was there.
    package mutating func mayHaveBeenRefused(_ key: Int) { kept.remove(key) }

    /// A purge that was asked for may have been done, acknowledged or not.
    package mutating func mayHaveBeenPurged(_ tag: String) {
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

    /// A read after an opening settles which of the possible values it was.
    package mutating func observe(_ version: Int?, for key: Int) {
        // What is not found now may still lie on disk: only the other values are out.
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
        // The removal of the session is queued, no more: until it is written, the next opening
        // does it again.
        afterKill = possible
    }

    package func allows(_ version: Int?, for key: Int, nowSeconds: Int64) -> Bool {
        guard let version else { return true }
        return (possible[key] ?? []).contains {
            $0.version == version && $0.expiresSeconds > nowSeconds
        }
    }

    /// Whether nothing is legal for a tier that has had room for everything.
    package func mayBeGone(_ key: Int) -> Bool {
        !kept.contains(key)
    }

    /// The value that was given last, if nothing durable has come since.
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
