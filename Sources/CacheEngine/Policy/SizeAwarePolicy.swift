import Synchronization

/// Keeps the entries that are worth most for their size.
///
/// With the gate open, the worth is the rate of hits that entries of that frequency and age promise,
/// learned from a sample (`ReuseLearner`), over size^power. With the gate closed it is that of GDSF
/// (Cherkasova 1998), frequency / size^power with ageing, and a newcomer that is worth less than the
/// victim is refused. A trial of both shows which helps (`GateTrial`).
///
/// Entries of one class are queued in the order of their time, as in CAMP
/// (https://doi.org/10.1145/2663165.2663317), so that no entry is sorted. Deviations: the frequency
/// comes from a sketch and survives eviction. A small window gives newcomers time for hits before
/// they are judged. `ShardSet` evicts and refuses.
///
///            ┌────────┐ worth more, or room   ┌──────────────────────────────┐
///     new ──▶│ window │──────────────────────▶│ queue per class: stamp =     │──▶ least worth
///            └────────┘                       │ age + frequency / size^power │    leaves and
///                 └─ worth less: leaves       └──────────────────────────────┘    sets the age
///
/// A slot that was hit since it was queued is queued again when its turn comes.
///
/// The hit path does not know the policy: it counts in the slot, and the policy reads that count when
/// it considers the slot. Queues are per shard; what they say of a slot is comparable over all shards.
struct SizeAwarePolicy: ~Copyable {
    /// A queue for each `EntryClass`.
    private static let mainQueues = 0..<EntryClass.count
    private static let window = EntryClass.count
    private static let pinned = window + 1
    private static let queueCount = pinned + 1

    private var queues: SlotQueues
    private var sketch: FrequencySketch
    private let shared: SharedPolicyState
    private let exponent: SizeExponent
    /// The result of `nextOfMain`, unless the main part has changed since.
    private var knownNext: Next?
    /// A newcomer from disk must be worth more than its victim by this factor: a promotion has a cost.
    private static let promotionGain = 2.0

    /// The queue whose oldest slot is the next victim of the main part, and the gate it was chosen by.
    private struct Next {
        var queue: Int?
        var rank: Double
        /// The least stamp of all queues.
        var stamp: Double
        var gateWasOn: Bool
    }

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

    /// The rank of the slot that would be evicted first, or infinity if the part is empty.
    mutating func rank(of part: EvictionPart) -> Double {
        switch part {
        case .window: queues.tailMark(of: Self.window).stamp
        case .main: nextOfMain().rank
        case .pinned: queues.tailMark(of: Self.pinned).stamp
        }
    }

    private mutating func nextOfMain() -> Next {
        let gateIsOn = shared.gateIsOn.load(ordering: .relaxed)
        if let known = knownNext, known.gateWasOn == gateIsOn { return known }
        let next = gateIsOn ? nextByStamp() : nextByRate()
        knownNext = next
        return next
    }

    private func nextByStamp() -> Next {
        let least = queues.least(in: Self.mainQueues) { _, tail in tail.stamp }
        return Next(queue: least.queue, rank: least.rank, stamp: least.rank, gateWasOn: true)
    }

    private func nextByRate() -> Next {
        let (now, shared) = (shared.clock.now, shared)
        var stamp = Double.infinity
        let least = queues.least(in: Self.mainQueues) { queue, tail in
            stamp = min(stamp, tail.stamp)
            let age = now - min(now, UInt64(max(0, tail.time)))
            return shared.worth(EntryClass(number: queue), age: age)
        }
        return Next(queue: least.queue, rank: least.rank, stamp: stamp, gateWasOn: false)
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
            push(slot, to: Self.window, stamp: shared.nextSequence())
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
        take(slot)
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
        take(slot)
        push(slot, to: Self.pinned, stamp: shared.nextSequence())
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
        let next = nextOfMain()
        guard let slot = next.queue.flatMap({ queues.tail(of: $0) }) else { return .empty }
        if mayRequeue == .yes, facts.hits(of: slot) > 0 {
            shared.raiseAge(to: next.stamp)
            take(slot)
            enqueue(slot, facts)
            return .requeued
        }
        if exempt(slot, facts) { return .requeued }
        if let rival, rival <= defence(of: slot, facts) { return .isWorthMore }
        shared.raiseAge(to: next.stamp)
        return .evict(slot)
    }

    /// Counts a request for a newcomer that is not kept, so that the next one finds a count.
    mutating func noteUse(of identity: UInt64) { sketch.count(identity) }

    /// Whether the next victim of the main part is worth as much as a newcomer of that worth.
    ///
    /// A victim that was hit since it was queued defends nothing: the eviction queues it again and
    /// finds the next one.
    mutating func wouldDefend(against rival: Worth, _ facts: some SlotFacts) -> Bool {
        // The time has gone on since the last victim was chosen.
        knownNext = nil
        let next = nextOfMain()
        guard let slot = next.queue.flatMap({ queues.tail(of: $0) }), facts.hits(of: slot) == 0
        else { return false }
        return next.gateWasOn
            ? rival.priority <= defence(of: slot, facts)
            : rival.rate <= Self.promotionGain * next.rank
    }

    /// The worth of a newcomer: its priority behind a closed gate, and its rate behind an open one.
    struct Worth {
        var priority: Double
        var rate: Double
    }

    mutating func worth(ofNew identity: UInt64, chargeBytes: Int) -> Worth {
        let frequency = min(FrequencySketch.frequencyMax, sketch.frequency(of: identity) + 1)
        let entryClass = EntryClass(frequency: frequency, chargeBytes: chargeBytes)
        return Worth(
            priority: Double(frequency) / exponent.power(of: chargeBytes),
            rate: shared.worth(entryClass, age: 0)
        )
    }

    /// The priority that a newcomer would have.
    mutating func priority(ofNew identity: UInt64, chargeBytes: Int) -> Double {
        worth(ofNew: identity, chargeBytes: chargeBytes).priority
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

    /// Sums the frequencies of the rarest entries, of them the largest first, until their sizes reach
    /// `bytes` or the sum `sumMax`.
    mutating func frequencySum(ofFirst bytes: Int, sumMax: Int, _ facts: some SlotFacts) -> Int {
        var sum = 0
        var reached = 0
        for rarest in 0..<EntryClass.frequencies {
            for largest in (0..<EntryClass.sizes).reversed() {
                var next = queues.tail(of: rarest * EntryClass.sizes + largest)
                while let slot = next {
                    guard reached < bytes, sum < sumMax else { return sum }
                    reached += facts.chargeBytes(of: slot)
                    sum += frequency(of: slot, facts)
                    next = queues.newer(than: slot)
                }
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

    private mutating func enterPinned(_ slot: Int, chargeBytes: Int) {
        shared.pinnedBytes.add(chargeBytes, ordering: .relaxed)
        push(slot, to: Self.pinned, stamp: shared.nextSequence())
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
        let (frequency, chargeBytes) = (frequency(of: slot, facts), facts.chargeBytes(of: slot))
        let priority = Double(frequency) / exponent.power(of: chargeBytes)
        let queue = EntryClass(frequency: frequency, chargeBytes: chargeBytes).number
        push(slot, to: queue, stamp: shared.age + priority)
    }

    private mutating func push(_ slot: Int, to queue: Int, stamp: Double) {
        if Self.mainQueues.contains(queue) { knownNext = nil }
        queues.push(slot, to: queue, .init(stamp: stamp, time: Double(shared.clock.now)))
    }

    private mutating func take(_ slot: Int) {
        knownNext = nil
        queues.remove(slot)
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

    /// Whether the counts have faded as they should; the next question fades them.
    var isSketchCurrent: Bool { sketch.isCurrent }

    /// The recent requests for a key without an entry, the last one included.
    mutating func frequency(ofAbsent identity: UInt64) -> Int {
        max(1, sketch.frequency(of: identity))
    }

    /// The recent requests of the slot's entry, the one that stored it included.
    mutating func frequency(of slot: Int, _ facts: some SlotFacts) -> Int {
        let counted = sketch.frequency(of: facts.identity(of: slot)) + facts.hits(of: slot)
        return max(1, min(FrequencySketch.frequencyMax, counted))
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
