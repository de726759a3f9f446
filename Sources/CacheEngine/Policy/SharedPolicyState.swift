import Synchronization

/// The policy's state that all shards of one memory share.
final class SharedPolicyState: Sendable {
    /// The ratio that the policy tries to keep high.
    let objective: EvictionPolicy.Objective
    /// The factors of a rate for the sizes of `EntryClass`.
    let sizeWeights: EntryClass.PerSize
    /// Decides when every shard's sketch is halved.
    let sketchAge = SketchAge()
    /// The time by which entries age; a shadow cache has that of the real memory.
    let clock: NewcomerClock
    /// The worth of entries when the gate is open; a shadow cache has that of the real memory.
    let rates: ReuseRates
    /// Bytes that all entries together may use.
    let capacityBytes: Atomic<Int>
    /// Bytes of the entries in all windows.
    let windowBytes = Atomic(0)
    /// Bytes of the entries that are exempt from eviction.
    let pinnedBytes = Atomic(0)
    /// Entries of the pinned class beyond this are evicted like others.
    var pinnedBytesMax: Int {
        capacityBytes.load(ordering: .relaxed).scaled(by: pinnedShareMax)
    }
    /// Whether another entry may be exempt from eviction.
    func hasPinnedRoom(for chargeBytes: Int) -> Bool {
        pinnedBytes.load(ordering: .relaxed) + chargeBytes <= pinnedBytesMax
    }
    private let pinnedShareMax: Double
    /// The age: the stamp of the last victim, as the bits of a `Double`.
    private let ageBits = Atomic<UInt64>(0)
    private let sequence = Atomic<UInt64>(0)
    /// Whether a newcomer must be worth more than the victim, which the stamps choose then; otherwise
    /// the rates choose it.
    let gateIsOn = Atomic(true)
    private let openLeadIsClear = Atomic(false)

    init(
        objective: EvictionPolicy.Objective,
        capacityBytes: Int,
        pinnedShareMax: Double = 0,
        clock: NewcomerClock = NewcomerClock(),
        rates: ReuseRates = ReuseRates()
    ) {
        let exponent = SizeExponent(objective)
        sizeWeights = InlineArray { 1 / exponent.power(of: EntryClass.bytesMin(ofSize: $0)) }
        self.clock = clock
        self.rates = rates
        self.pinnedShareMax = pinnedShareMax
        self.objective = objective
        self.capacityBytes = Atomic(capacityBytes)
    }

    /// Whether newcomers that were read from disk need not be worth more than the victim.
    ///
    /// The gate also opens, and stays open, within what chance would give: where nearly all requests
    /// miss, that changes every few thousand requests. An entry that stays on disk is not lost, so
    /// it needs a clear lead.
    var promotesFreely: Bool {
        !gateIsOn.load(ordering: .relaxed) && openLeadIsClear.load(ordering: .relaxed)
    }

    /// Sets whether the open gate leads by more than chance would give.
    func setOpenLeadClear(_ isClear: Bool) {
        // Every shard reads it: it is written only if it changes.
        guard isClear != openLeadIsClear.load(ordering: .relaxed) else { return }
        openLeadIsClear.store(isClear, ordering: .relaxed)
    }

    var age: Double { Double(bitPattern: ageBits.load(ordering: .relaxed)) }

    /// Raises the age to `stamp`.
    ///
    /// The age never falls.
    func raiseAge(to stamp: Double) {
        // The bits of positive doubles are ordered as the doubles are.
        _ = ageBits.max(stamp.bitPattern, ordering: .relaxed)
    }

    /// The worth of an entry of that class and age when the gate is open.
    ///
    /// Within a step of age the older entry is worth a trace less, so that no shard and no size is
    /// always the first of equals.
    func worth(_ entryClass: EntryClass, age: UInt64) -> Double {
        rates.rate(frequencyClass: entryClass.frequency, age: age)
            * sizeWeights[entryClass.size] * (1 - min(0.5, Double(age) * 0x1p-40))
    }

    func nextSequence() -> Double {
        Double(sequence.wrappingAdd(1, ordering: .relaxed).newValue)
    }
}
