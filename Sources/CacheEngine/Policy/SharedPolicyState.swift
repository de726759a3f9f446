import Synchronization

/// The policy's state that all shards of one memory share.
final class SharedPolicyState: Sendable {
    /// The ratio that the policy tries to keep high.
    let objective: EvictionPolicy.Objective
    /// Decides when every shard's sketch is halved.
    let sketchAge = SketchAge()
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
    /// Whether a newcomer must be worth more than the victim.
    let gateIsOn = Atomic(true)
    private let openLeadIsClear = Atomic(false)

    init(
        objective: EvictionPolicy.Objective,
        capacityBytes: Int,
        pinnedShareMax: Double = 0
    ) {
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

    func nextSequence() -> Double {
        Double(sequence.wrappingAdd(1, ordering: .relaxed).newValue)
    }
}
