/// How often each thing has happened since the memory was made.
package struct MemoryCounters: Hashable, Sendable {
    package var hits = 0
    package var misses = 0
    package var insertions = 0
    package var refusals = 0
    package var evictions = 0
    package var evictedBytes = 0
    package var expirations = 0

    package init() {}

    package static func + (left: Self, right: Self) -> Self {
        var sum = left
        sum.hits += right.hits
        sum.misses += right.misses
        sum.insertions += right.insertions
        sum.refusals += right.refusals
        sum.evictions += right.evictions
        sum.evictedBytes += right.evictedBytes
        sum.expirations += right.expirations
        return sum
    }
}
