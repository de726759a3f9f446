import Synchronization

/// Keeps what is asked for often for the room it takes: frequency over size to a power, with ageing.
///
/// The priority is GDSF's (Cherkasova 1998), rounded into queues by powers of the root of two as in
/// CAMP (https://doi.org/10.1145/2663165.2663317), so that nothing is sorted. Ours: the frequency
/// comes from a sketch and survives eviction; a small window in front lets newcomers be hit before
/// they are judged; and at a full cache a newcomer that is worth less than the victim is turned
/// away, where a trial says that this helps (`GateTrial`).
///
///            ┌────────┐ worth more, or room   ┌──────────────────────────────┐
///     new ──▶│ window │──────────────────────▶│ queue per power: stamp =     │──▶ least stamp goes,
///            └────────┘                       │ age + frequency / size^power │    the age rises to it
///                 └─ worth less: leaves       └──────────────────────────────┘
///
/// A slot that was hit since it was queued is queued again when its turn comes.
struct SizeAwarePolicy: ReplacementPolicy, ~Copyable {
    /// Queues for priorities from 2^-42 to 2^4, two to a power of two.
    private static let mainQueues = 0..<92
    private static let window = 92
    private static let pinned = 93
    private static let queueCount = 94
    private static let exponentMin = -42

    private var queues: SlotQueues
    private var sketch: FrequencySketch
    private let shared: SharedPolicyState
    private let exponent: SizeExponent

    init(slotCount: Int, shared: SharedPolicyState) {
        queues = SlotQueues(queueCount: Self.queueCount, slotCount: slotCount)
        sketch = FrequencySketch(keys: slotCount, age: shared.sketchAge)
        self.shared = shared
        exponent = SizeExponent(shared.objective)
    }

    static func sizeBytes(slotCount: Int) -> Int {
        slotCount * SlotQueues.slotSizeBytes + queueCount * SlotQueues.queueSizeBytes
            + FrequencySketch.sizeBytes(keys: slotCount)
    }

    static func evictsProbationFirst(_: SharedPolicyState) -> Bool { false }

    func rank(of part: EvictionPart) -> Double {
        switch part {
        case .probation: queues.tailStamp(of: Self.window)
        case .main: queues.queueOfLeastStamp(in: Self.mainQueues)?.stamp ?? .infinity
        case .pinned: queues.tailStamp(of: Self.pinned)
        }
    }

    mutating func insert(
        _ slot: Int,
        chargeBytes: Int,
        isPinned: Bool,
        _ facts: some SlotFacts
    ) {
        let identity = facts.identity(of: slot)
        sketch.count(identity)
        if isPinned {
            queues.push(slot, to: Self.pinned, stamp: shared.nextSequence())
        } else if chargeBytes <= windowBytesMax {
            shared.probationBytes.add(chargeBytes, ordering: .relaxed)
            queues.push(slot, to: Self.window, stamp: shared.nextSequence())
        } else {
            enqueue(slot, facts)
        }
    }

    mutating func changeCharge(of slot: Int, from old: Int, to new: Int) {
        guard queues.queue(of: slot) == Self.window else { return }
        shared.probationBytes.add(new - old, ordering: .relaxed)
    }

    mutating func remove(_ slot: Int, chargeBytes: Int) {
        if queues.queue(of: slot) == Self.window {
            shared.probationBytes.subtract(chargeBytes, ordering: .relaxed)
        }
        queues.remove(slot)
    }

    mutating func next(
        in part: EvictionPart,
        against rival: Double?,
        mayRequeue: MayRequeue,
        _ facts: some SlotFacts
    ) -> EvictionStep {
        switch part {
        case .probation: return queues.tail(of: Self.window).map { .evict($0) } ?? .empty
        case .pinned: return queues.tail(of: Self.pinned).map { .evict($0) } ?? .empty
        case .main: break
        }
        guard let (queue, stamp) = queues.queueOfLeastStamp(in: Self.mainQueues),
            let slot = queues.tail(of: queue)
        else { return .empty }
        if mayRequeue == .yes, facts.hits(of: slot) > 0 {
            shared.raiseAge(to: stamp)
            queues.remove(slot)
            enqueue(slot, facts)
            return .requeued
        }
        if let rival, rival <= defence(of: slot, facts) { return .isWorthMore }
        shared.raiseAge(to: stamp)
        return .evict(slot)
    }

    mutating func noteRefusal(of identity: UInt64) { sketch.count(identity) }

    mutating func priority(ofNew identity: UInt64, chargeBytes: Int) -> Double? {
        let frequency = min(FrequencySketch.frequencyMax, sketch.frequency(of: identity) + 1)
        return Double(frequency) / exponent.power(of: chargeBytes)
    }

    mutating func candidate(_ facts: some SlotFacts) -> (slot: Int, priority: Double)? {
        guard let slot = queues.tail(of: Self.window) else { return nil }
        return (slot, priority(of: slot, facts))
    }

    mutating func settleCandidate(_ facts: some SlotFacts) {
        guard let slot = queues.tail(of: Self.window) else { return }
        enter(slot, facts)
    }

    /// Lets the oldest in front enter the main part while there are too many in front.
    mutating func settle(_ facts: some SlotFacts) {
        while shared.probationBytes.load(ordering: .relaxed) > windowBytesMax,
            let slot = queues.tail(of: Self.window)
        {
            enter(slot, facts)
        }
    }

    mutating func frequencySum(ofFirst bytes: Int, sumMax: Int, _ facts: some SlotFacts) -> Int {
        var sum = 0
        var reached = 0
        for queue in Self.mainQueues {
            var next = queues.tail(of: queue)
            while let slot = next {
                guard reached < bytes, sum < sumMax else { return sum }
                reached += facts.chargeBytes(of: slot)
                sum += frequency(of: slot, facts)
                next = queues.newer(than: slot)
            }
        }
        return sum
    }

    mutating func grow(slotCount: Int, _ move: (Int) -> Int) {
        let larger = SlotQueues(queueCount: Self.queueCount, slotCount: slotCount)
        queues.moveAll(to: larger, move)
        queues = larger
        sketch.grow(keys: slotCount)
    }

    private var windowBytesMax: Int {
        AdmissionRule.windowBytesMax(shared.capacityBytes.load(ordering: .relaxed))
    }

    private mutating func enter(_ slot: Int, _ facts: some SlotFacts) {
        remove(slot, chargeBytes: facts.chargeBytes(of: slot))
        enqueue(slot, facts)
    }

    private mutating func enqueue(_ slot: Int, _ facts: some SlotFacts) {
        let hits = facts.hits(of: slot)
        if hits > 0 {
            sketch.count(facts.identity(of: slot), times: hits)
            facts.setHits(of: slot, to: 0)
        }
        let priority = priority(of: slot, facts)
        queues.push(slot, to: Self.queue(for: priority), stamp: shared.age + priority)
    }

    /// What a newcomer must be worth more than to take the slot's place.
    private mutating func defence(of slot: Int, _ facts: some SlotFacts) -> Double {
        let frequency = frequency(of: slot, facts)
        // Two keys that are asked for in turn differ by one: the newcomer has just had its turn. An
        // entry never asked for again has no such excuse.
        let turn = frequency > 1 ? 1 : 0
        return Double(frequency + turn) / exponent.power(of: facts.chargeBytes(of: slot))
    }

    private mutating func priority(of slot: Int, _ facts: some SlotFacts) -> Double {
        Double(frequency(of: slot, facts)) / exponent.power(of: facts.chargeBytes(of: slot))
    }

    private mutating func frequency(of slot: Int, _ facts: some SlotFacts) -> Int {
        let counted = sketch.frequency(of: facts.identity(of: slot)) + facts.hits(of: slot)
        return max(1, min(FrequencySketch.frequencyMax, counted))
    }

    /// The queue for entries whose priority lies between two powers of the root of two.
    static func queue(for priority: Double) -> Int {
        let isUpperHalf = priority.significand >= 1.414_213_562_373_095_1
        let index = 2 * (Int(priority.exponent) - exponentMin) + (isUpperHalf ? 1 : 0)
        return max(mainQueues.lowerBound, min(mainQueues.upperBound - 1, index))
    }
}

/// How much size weighs in a priority: the power to which it is taken.
enum SizeExponent: Sendable {
    case zero
    case half
    case one

    init(_ objective: EvictionPolicy.Objective) {
        self =
            switch objective {
            case .requests: .one
            case .balanced: .half
            case .bytes: .zero
            }
    }

    func power(of bytes: Int) -> Double {
        switch self {
        case .zero: 1
        case .half: Double(bytes).squareRoot()
        case .one: Double(bytes)
        }
    }

    /// What a hit on so many bytes is worth to the objective.
    func gain(of bytes: Int) -> Double {
        switch self {
        case .zero: Double(bytes)
        case .half: Double(bytes).squareRoot()
        case .one: 1
        }
    }
}
