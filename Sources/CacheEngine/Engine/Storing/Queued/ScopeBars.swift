/// The removals of many keys that a custom store has not carried out yet; entries that they cover
/// are not read from it.
///
/// A pure value: it calls no store and reads no clock.
struct ScopeBars {
    private struct Bar {
        /// The last attempt that began.
        var number: UInt64
        /// The numbers of the attempts that have not ended.
        var underWay: Set<UInt64> = []
        var failures = 0
        /// Whether an attempt has failed and none has succeeded since.
        var isOwed = false
        var dueNanoseconds: UInt64 = 0
    }

    private let limits: StoreLimits
    private var bars: [RemovalScope: Bar] = [:]
    private var number: UInt64 = 0

    init(limits: StoreLimits) { self.limits = limits }

    var owedCount: Int { bars.values.count { $0.isOwed } }
    var isOverLimit: Bool { owedCount > limits.maximumBarredScopes }
    /// Whether no entry may be read.
    var coversEverything: Bool { bars[.everything] != nil }
    /// Whether the removal of everything has failed, or takes the place of others that have.
    var owesEverything: Bool { bars[.everything]?.isOwed == true }

    /// The scopes that are barred now.
    var scopes: [RemovalScope] { Array(bars.keys) }

    func covers(_ entry: StoredEntry) -> Bool {
        !bars.isEmpty && bars.keys.contains { entry.isCovered(by: $0) }
    }

    /// Begins an attempt to remove the entries in `scope`.
    mutating func begin(_ scope: RemovalScope) -> UInt64 {
        number += 1
        bars[scope, default: Bar(number: number)].number = number
        bars[scope]?.underWay.insert(number)
        return number
    }

    /// Ends the attempt with that number.
    ///
    /// One that a later success has made needless ends nothing: a bar that there is by now belongs to
    /// attempts since.
    mutating func end(
        _ scope: RemovalScope,
        _ number: UInt64,
        hasFailed: Bool,
        nowNanoseconds: UInt64
    ) {
        guard var bar = bars[scope], bar.underWay.remove(number) != nil else { return }
        if hasFailed {
            bar.isOwed = true
            bar.failures += 1
            bar.dueNanoseconds =
                nowNanoseconds + limits.retryNanoseconds(afterFailures: bar.failures)
        } else if number >= bar.number {
            bars[scope] = nil
            if scope == .everything {
                bars = bars.filter { !$0.value.underWay.isEmpty || $0.value.number > number }
            }
            return
        }
        bars[scope] = bar
    }

    /// Makes the removal of `scope` owed, and due at once.
    mutating func owe(_ scope: RemovalScope) {
        number += 1
        if scope == .everything { bars = bars.filter { !$0.value.underWay.isEmpty } }
        bars[scope, default: Bar(number: number)].number = number
        bars[scope]?.isOwed = true
    }

    /// The scopes whose removal is due again.
    func due(nowNanoseconds: UInt64) -> [RemovalScope] {
        bars.filter {
            $0.value.isOwed && $0.value.underWay.isEmpty
                && $0.value.dueNanoseconds <= nowNanoseconds
        }.sorted { $0.value.number < $1.value.number }.map(\.key)
    }

    /// The time at which the next removal is due again.
    var firstDueNanoseconds: UInt64? {
        bars.values.filter { $0.isOwed && $0.underWay.isEmpty }.map(\.dueNanoseconds).min()
    }
}
