import Synchronization

/// Determines whether refusing weak newcomers helps, by simulating both choices on sampled keys.
///
/// Two shadow caches see the same sampled requests, one with the gate and one without. The one with
/// the greater recent gain decides for the real cache. The gate protects the entries against a loop
/// or a scan; without it, the rates at which entries are requested again choose the victim, which
/// are learned from the same sample.
final class GateTrial: Sendable {
    /// The two shadow caches and the learner, under the trial's lock.
    ///
    /// `@unchecked Sendable`: the mutex owns the value, and only code under the lock touches it.
    private struct State: ~Copyable, @unchecked Sendable {
        var closed: ShadowCache
        var open: ShadowCache
        var learner: ReuseLearner
        var closedGain = 0.0
        var openGain = 0.0
        /// The sum of the squared gains of the hits that only one of the two had.
        var disputedSquares = 0.0
        var sampleShift = 0
        var capacityBytes: Int
    }

    /// The factor that reduces a gain at each sampled request.
    private static let remembrance = 0.9995
    /// The relative lead of the open gate that opens a closed one; a smaller one does if it is clear.
    private static let openingMargin = 0.02
    /// The relative lead of the closed gate that closes an open one, if it is clear.
    private static let closingMargin = 0.01
    /// The lead that is clear, as a multiple of what chance would give.
    ///
    /// If each disputed hit had gone to either side by chance, the lead would be about the root of
    /// the sum of their squares.
    private static let clearDeviations = 2.0
    private static let slotCountMax = 1024

    private let state: Mutex<State>
    private let sampleMask = Atomic<UInt64>(0)
    private let shared: SharedPolicyState
    private let exponent: SizeExponent
    let sizeBytes: Int

    init(shared: SharedPolicyState) {
        self.shared = shared
        exponent = SizeExponent(shared.objective)
        let capacityBytes = shared.capacityBytes.load(ordering: .relaxed)
        let slotCount = max(64, min(Self.slotCountMax, capacityBytes >> 12))
        sizeBytes =
            2 * ShadowCache.sizeBytes(slotCount: slotCount)
            + ReuseLearner.sizeBytes(slotCount: slotCount) + ReuseRates.sizeBytes
        state = Mutex(
            State(
                closed: ShadowCache(slotCount: slotCount, of: shared, gate: .closed),
                open: ShadowCache(slotCount: slotCount, of: shared, gate: .open),
                learner: ReuseLearner(slotCount: slotCount, rates: shared.rates),
                capacityBytes: capacityBytes
            )
        )
    }

    /// Whether requests for the key belong to the sample.
    func isSampled(_ identity: UInt64) -> Bool {
        identity >> 24 & sampleMask.load(ordering: .relaxed) == 0
    }

    /// Records a request for a sampled key; skipped if another thread records at the same time.
    ///
    /// `use` is that of the key's entry, or `nil` if it is not known now. `mayCompute` is false for a
    /// reader inside its gate, for which writers wait.
    func note(
        _ identity: UInt64,
        chargeBytes: Int,
        mayCompute: Bool,
        use: () -> EntryUse?
    ) {
        _ = state.withLockIfAvailable { state in
            guard isSampled(identity) else { return }
            let gain = exponent.gain(of: chargeBytes)
            state.closedGain *= Self.remembrance
            state.openGain *= Self.remembrance
            state.disputedSquares *= Self.remembrance
            let isInClosed = state.closed.access(identity, chargeBytes: chargeBytes)
            let isInOpen = state.open.access(identity, chargeBytes: chargeBytes)
            if isInClosed { state.closedGain += gain }
            if isInOpen { state.openGain += gain }
            if isInClosed != isInOpen { state.disputedSquares += gain * gain }
            if let use = use() {
                let now = shared.clock.now
                state.learner.fade(to: shared.sketchAge.halvings)
                state.learner.note(
                    identity,
                    frequency: use.frequency,
                    at: now,
                    isNextTold: !use.isFull
                )
                if mayCompute { state.learner.computeIfDue(at: now) }
            }
            if state.closed.isOutOfSlots || state.open.isOutOfSlots { thinOut(&state) }
            decide(state)
        }
    }

    /// Sets the capacity of the real cache.
    ///
    /// The sample of a smaller cache is denser, so that the shadow caches shrink no more than they
    /// must: in one that holds a few entries, chance would decide.
    func setCapacity(_ bytes: Int) {
        state.withLock { state in
            let shadowBytes = state.capacityBytes >> state.sampleShift
            state.capacityBytes = bytes
            var shift = state.sampleShift
            while shift > 0, bytes >> (shift - 1) <= shadowBytes { shift -= 1 }
            sample(shift, &state)
        }
    }

    private func decide(_ state: borrowing State) {
        let (closed, open) = (state.closedGain, state.openGain)
        let most = max(closed, open)
        let chance = state.disputedSquares.squareRoot()
        shared.setOpenLeadClear(open - closed > Self.clearDeviations * chance)
        if shared.gateIsOn.load(ordering: .relaxed) {
            let lead = min(Self.openingMargin * most, Self.clearDeviations * chance)
            guard open - closed > lead else { return }
            shared.gateIsOn.store(false, ordering: .relaxed)
        } else {
            let lead = max(Self.closingMargin * most, chance)
            guard closed - open > lead else { return }
            shared.gateIsOn.store(true, ordering: .relaxed)
        }
    }

    /// Halves the sample.
    private func thinOut(_ state: inout State) { sample(state.sampleShift + 1, &state) }

    /// Samples one of `1 << shift` keys, and gives the shadow caches that share of the capacity.
    private func sample(_ shift: Int, _ state: inout State) {
        state.sampleShift = shift
        sampleMask.store((1 << UInt64(shift)) - 1, ordering: .relaxed)
        let bytes = state.capacityBytes >> state.sampleShift
        state.closed.resize(capacityBytes: bytes) { isSampled($0) }
        state.open.resize(capacityBytes: bytes) { isSampled($0) }
        state.learner.forget { isSampled($0) }
    }
}
