/// How often each event has happened since the memory was made.
package struct MemoryCounters: Hashable, Sendable {
    package var hits = 0
    package var misses = 0
    package var refusals = 0
    package var evictions = 0

    package init() {}

    package static func + (left: Self, right: Self) -> Self {
        var sum = left
        sum.hits += right.hits
        sum.misses += right.misses
        sum.refusals += right.refusals
        sum.evictions += right.evictions
        return sum
    }
}
