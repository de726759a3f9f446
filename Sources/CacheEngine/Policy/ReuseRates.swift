import Synchronization

/// The rate of hits that an entry promises, by the class of its frequency and by its age.
///
/// It is the greatest number of hits for the time, over any time that begins at that age: the index
/// of Gittins. An old entry is worth much shortly before its next request, if most of its class are
/// requested again at that age.
///
/// Shards read it without a lock while `ReuseLearner` writes it: each rate is right by itself, and
/// they need not be of one moment.
///
/// `@unchecked Sendable`: the slab is allocated once and holds only atomics.
final class ReuseRates: @unchecked Sendable {
    /// The bits of a `Float` each.
    private let bits: UnsafeMutablePointer<Atomic<UInt32>>
    private static let count = EntryClass.frequencies * AgeScale.steps
    static let sizeBytes = count * MemoryLayout<UInt32>.stride

    init() {
        bits = .allocate(capacity: Self.count)
        for place in 0..<Self.count { (bits + place).initialize(to: Atomic(0)) }
    }

    deinit { bits.deallocate() }

    func rate(frequencyClass: Int, age: UInt64) -> Double {
        let place = frequencyClass * AgeScale.steps + AgeScale.step(of: age)
        return Double(Float(bitPattern: (bits + place).pointee.load(ordering: .relaxed)))
    }

    func setRate(frequencyClass: Int, step: Int, to rate: Double) {
        let place = frequencyClass * AgeScale.steps + step
        (bits + place).pointee.store(Float(rate).bitPattern, ordering: .relaxed)
    }
}

/// Counts the newcomers of a memory: the time by which entries age.
///
/// A hit writes no memory that is shared, so requests are not counted.
final class NewcomerClock: Sendable {
    private let count = Atomic<UInt64>(0)
    var now: UInt64 { count.load(ordering: .relaxed) }
    func tick() { count.add(1, ordering: .relaxed) }
}
