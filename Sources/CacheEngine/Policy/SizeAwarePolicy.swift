import Synchronization

/// Keeps the entries with the most requests for their size: frequency / size^power, with ageing.
///
/// The priority is that of GDSF (Cherkasova 1998). It is rounded to queues by powers of the square
/// root of two as in CAMP (https://doi.org/10.1145/2663165.2663317), so that no entry is sorted.
/// Deviations: the frequency comes from a sketch and survives eviction. A small window gives
/// newcomers time for hits before they are judged. In a full cache a newcomer that is worth less
/// than the victim is refused, if a trial shows that this helps (`GateTrial`). `ShardSet` evicts and
/// refuses.
///
///            ┌────────┐ worth more, or room   ┌──────────────────────────────┐
///     new ──▶│ window │──────────────────────▶│ queue per power: stamp =     │──▶ least stamp
///            └────────┘                       │ age + frequency / size^power │    leaves and
///                 └─ worth less: leaves       └──────────────────────────────┘    sets the age
///
/// A slot that was hit since it was queued is queued again when its turn comes.
///
/// The hit path does not know the policy: it counts in the slot, and the policy reads that count when
/// it considers the slot. Queues are per shard; their stamps are comparable over all shards.
struct SizeAwarePolicy: ~Copyable {
    /// Queues for priorities from 2^-42 to 2^4, two queues for each power of two.
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

    /// The stamp of the slot that would be evicted first, or infinity if the part is empty.
    func rank(of part: EvictionPart) -> Double {
        switch part {
        case .window: queues.tailStamp(of: Self.window)
        case .main: queues.queueOfLeastStamp(in: Self.mainQueues)?.stamp ?? .infinity
        case .pinned: queues.tailStamp(of: Self.pinned)
        }
    }

    /// Takes up a new entry, which is in `slot`.
    mutating func insert(
        _ slot: Int,
        chargeBytes: Int,
        isPinned: Bool,
        _ facts: some SlotFacts
    ) {
        let identity = facts.identity(of: slot)
        sketch.count(identity)
        if isPinned {
            enterPinned(slot, chargeBytes: chargeBytes)
        } else if chargeBytes <= windowBytesMax {
            shared.windowBytes.add(chargeBytes, ordering: .relaxed)
            queues.push(slot, to: Self.window, stamp: shared.nextSequence())
        } else {
            enqueue(slot, facts)
        }
    }

    /// Whether the slot is exempt from eviction while pinned entries are within their share.
    func isPinned(_ slot: Int) -> Bool { queues.queue(of: slot) == Self.pinned }

    /// The entry in `slot` was replaced: its charge has changed, and it moves if it is pinned now, or
    /// no longer.
    mutating func replace(
        _ slot: Int,
        oldChargeBytes: Int,
        chargeBytes: Int,
        isPinned: Bool,
        _ facts: some SlotFacts
    ) {
        if isPinned != self.isPinned(slot), !Mutant.staysInItsQueue.isOn {
            remove(slot, chargeBytes: oldChargeBytes)
            insert(slot, chargeBytes: chargeBytes, isPinned: isPinned, facts)
        } else if queues.queue(of: slot) == Self.window {
            shared.windowBytes.add(chargeBytes - oldChargeBytes, ordering: .relaxed)
        } else if self.isPinned(slot) {
            shared.pinnedBytes.add(chargeBytes - oldChargeBytes, ordering: .relaxed)
        }
    }

    /// The entry in `slot` is leaving.
    mutating func remove(_ slot: Int, chargeBytes: Int) {
        let queue = queues.queue(of: slot)
        if queue == Self.window {
            let rest = shared.windowBytes.subtract(chargeBytes, ordering: .relaxed).newValue
            assert(rest >= 0, "only bytes that were counted leave the window")
        } else if queue == Self.pinned {
            let rest = shared.pinnedBytes.subtract(chargeBytes, ordering: .relaxed).newValue
            assert(rest >= 0, "only bytes that were counted are taken off")
        }
        queues.remove(slot)
    }

    /// Exempts the slot from eviction, if its entry is of the pinned class and the pinned share has
    /// room for it.
    ///
    /// The share may have had none when the entry was stored.
    mutating func exempt(_ slot: Int, _ facts: some SlotFacts) -> Bool {
        guard facts.isOfPinnedClass(slot), !Mutant.pinsOnlyWhenStored.isOn else { return false }
        let chargeBytes = facts.chargeBytes(of: slot)
        guard shared.hasPinnedRoom(for: chargeBytes) else { return false }
        remove(slot, chargeBytes: chargeBytes)
        enterPinned(slot, chargeBytes: chargeBytes)
        return true
    }

    /// Ends the exemption of the slot that has had it for longest, or queues the slot again if it
    /// was hit since.
    mutating func yieldPinned(_ facts: some SlotFacts) {
        guard let slot = queues.tail(of: Self.pinned) else { return }
        guard takeHits(of: slot, facts) > 0 else { return enter(slot, facts) }
        queues.remove(slot)
        queues.push(slot, to: Self.pinned, stamp: shared.nextSequence())
    }

    /// Requeues the next slot if it has hits or is exempt now, or names it as the victim.
    mutating func next(
        in part: EvictionPart,
        against rival: Double?,
        mayRequeue: MayRequeue,
        _ facts: some SlotFacts
    ) -> EvictionStep {
        switch part {
        case .window:
            guard let slot = queues.tail(of: Self.window) else { return .empty }
            return exempt(slot, facts) ? .requeued : .evict(slot)
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
        if exempt(slot, facts) { return .requeued }
        if let rival, rival <= defence(of: slot, facts) { return .isWorthMore }
        shared.raiseAge(to: stamp)
        return .evict(slot)
    }

    /// Counts a request for a newcomer that is not kept, so that the next one finds a count.
    mutating func noteUse(of identity: UInt64) { sketch.count(identity) }

    /// Whether the next victim of the main part is worth as much as a newcomer of that priority.
    ///
    /// A victim that was hit since it was queued defends nothing: the eviction queues it again and
    /// finds the next one.
    mutating func wouldDefend(against rival: Double, _ facts: some SlotFacts) -> Bool {
        guard let (queue, _) = queues.queueOfLeastStamp(in: Self.mainQueues),
            let slot = queues.tail(of: queue), facts.hits(of: slot) == 0
        else { return false }
        return rival <= defence(of: slot, facts)
    }

    /// The priority that a newcomer would have.
    mutating func priority(ofNew identity: UInt64, chargeBytes: Int) -> Double {
        let frequency = min(FrequencySketch.frequencyMax, sketch.frequency(of: identity) + 1)
        return Double(frequency) / exponent.power(of: chargeBytes)
    }

    /// The oldest slot of the window, and its priority.
    mutating func candidate(_ facts: some SlotFacts) -> (slot: Int, priority: Double)? {
        guard let slot = queues.tail(of: Self.window) else { return nil }
        return (slot, priority(of: slot, facts))
    }

    /// Moves the slot that `candidate` names into the main part.
    mutating func settleCandidate(_ facts: some SlotFacts) {
        guard let slot = queues.tail(of: Self.window) else { return }
        enter(slot, facts)
    }

    /// Moves the oldest slots of the window into the main part until the window is within its share.
    mutating func settle(_ facts: some SlotFacts) {
        while shared.windowBytes.load(ordering: .relaxed) > windowBytesMax,
            let slot = queues.tail(of: Self.window)
        {
            enter(slot, facts)
        }
    }

    /// Sums the frequencies of the next victims, until their sizes reach `bytes` or the sum `sumMax`.
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

    /// Makes room for more slots; `newSlots` has the new number of each slot.
    ///
    /// - Returns: The number of slots that are in a queue.
    mutating func grow(slotCount: Int, _ newSlots: [UInt32]) -> Int {
        let larger = SlotQueues(queueCount: Self.queueCount, slotCount: slotCount)
        let queuedCount = queues.copyAll(to: larger, newSlots)
        queues = larger
        sketch.grow(keys: slotCount)
        return queuedCount
    }

    private var windowBytesMax: Int {
        AdmissionRule.windowBytesMax(shared.capacityBytes.load(ordering: .relaxed))
    }

    private func enterPinned(_ slot: Int, chargeBytes: Int) {
        shared.pinnedBytes.add(chargeBytes, ordering: .relaxed)
        queues.push(slot, to: Self.pinned, stamp: shared.nextSequence())
    }

    private mutating func enter(_ slot: Int, _ facts: some SlotFacts) {
        remove(slot, chargeBytes: facts.chargeBytes(of: slot))
        enqueue(slot, facts)
    }

    /// Counts the hits of the slot in the sketch, and returns their number.
    private mutating func takeHits(of slot: Int, _ facts: some SlotFacts) -> Int {
        let hits = facts.hits(of: slot)
        if hits > 0 {
            sketch.count(facts.identity(of: slot), times: hits)
            facts.setHits(of: slot, to: 0)
        }
        return hits
    }

    private mutating func enqueue(_ slot: Int, _ facts: some SlotFacts) {
        _ = takeHits(of: slot, facts)
        let priority = priority(of: slot, facts)
        queues.push(slot, to: Self.queue(for: priority), stamp: shared.age + priority)
    }

    /// The priority that a newcomer must exceed to displace the slot.
    private mutating func defence(of slot: Int, _ facts: some SlotFacts) -> Double {
        let frequency = frequency(of: slot, facts)
        // Two keys that are requested alternately differ by one, because the newcomer was just
        // counted. An entry with a single request gets no such allowance.
        let turn = frequency > 1 ? 1 : 0
        return Double(frequency + turn) / exponent.power(of: facts.chargeBytes(of: slot))
    }

    private mutating func priority(of slot: Int, _ facts: some SlotFacts) -> Double {
        Double(frequency(of: slot, facts)) / exponent.power(of: facts.chargeBytes(of: slot))
    }

    /// The recent requests of the slot's entry, the one that stored it included.
    mutating func frequency(of slot: Int, _ facts: some SlotFacts) -> Int {
        let counted = sketch.frequency(of: facts.identity(of: slot)) + facts.hits(of: slot)
        return max(1, min(FrequencySketch.frequencyMax, counted))
    }

    /// The queue for a priority; each queue spans a factor of the square root of two.
    static func queue(for priority: Double) -> Int {
        let isUpperHalf = priority.significand >= 1.414_213_562_373_095_1
        let index = 2 * (Int(priority.exponent) - exponentMin) + (isUpperHalf ? 1 : 0)
        return max(mainQueues.lowerBound, min(mainQueues.upperBound - 1, index))
    }
}

/// The power of the size in a priority.
enum SizeExponent: Sendable {
    case zero
    case threeQuarters
    case one

    init(_ objective: EvictionPolicy.Objective) {
        self =
            switch objective {
            case .requests: .one
            case .balanced: .threeQuarters
            case .bytes: .zero
            }
    }

    func power(of bytes: Int) -> Double {
        switch self {
        case .zero: 1
        case .threeQuarters: Double(bytes) / Double(bytes).squareRoot().squareRoot()
        case .one: Double(bytes)
        }
    }

    /// The value of a hit on `bytes` bytes for the objective.
    func gain(of bytes: Int) -> Double {
        switch self {
        case .zero: Double(bytes)
        case .threeQuarters: Double(bytes).squareRoot().squareRoot()
        case .one: 1
        }
    }
}
