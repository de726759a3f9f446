import Synchronization

/// The progress of a flight, from which the watchdog decides whether the flight hangs.
struct FlightProgress: ~Copyable, Sendable {
    /// One moment of a flight.
    struct Mark: Hashable {
        var attempt: Int
        var isUnanswered: Bool
        var pieces: Int
        /// Pieces of the request's content that the origin has taken.
        var uploadedPieces = 0
    }

    /// Not private: without optimisation the compiler emits no usable symbol for a private one.
    struct State {
        var chain: BodyChain?
        /// Whether the delivery of the body has begun to read from the origin.
        var isReading = false
        var seen = Mark(attempt: 1, isUnanswered: true, pieces: 0)
        var seenNanoseconds: UInt64
        var hasEnded = false
        var hasBodyFailed = false
    }

    private let state: Mutex<State>
    private let pieces = Atomic(0)
    private let isStoring = Atomic(false)

    init(nowNanoseconds: UInt64) { state = Mutex(State(seenNanoseconds: nowNanoseconds)) }

    /// Counts another piece of the body.
    func advance() { pieces.wrappingAdd(1, ordering: .relaxed) }

    /// Notes that the body has failed; returns `false` if that was noted before.
    ///
    /// The watchdog and the delivery may both find it out.
    func noteBodyFailure() -> Bool {
        state.withLock { state in
            defer { state.hasBodyFailed = true }
            return !state.hasBodyFailed
        }
    }

    func arriving(_ chain: BodyChain) { state.withLock { $0.chain = chain } }

    /// From now on the delivery waits for the origin, if it waits, or for its readers.
    func reading() { state.withLock { $0.isReading = true } }

    /// Notes whether the delivery waits for the storage, and not for the origin.
    ///
    /// Those waits have a limit of their own.
    func storing(_ isStoring: Bool) { self.isStoring.store(isStoring, ordering: .relaxed) }

    /// Ends the body that is read if it is not stored and no reader needs it; returns whether it did.
    func endDeserted() -> Bool {
        let chain = state.withLock { $0.isReading ? $0.chain : nil }
        guard chain?.failIfDeserted() == true else { return false }
        // The origin has not failed.
        _ = noteBodyFailure()
        return true
    }

    /// The progress of the flight, and the time without progress; `nil` if it has ended.
    ///
    /// A body that waits for a reader, for the storage or for the hook `willStore`, and not for the
    /// origin, counts as progress. A reader that stands still for `idleNanoseconds` no longer holds up the others.
    func look(
        at flight: Flight,
        uploadedPieces: Int,
        idleNanoseconds: UInt64,
        nowNanoseconds: UInt64
    ) -> (mark: Mark, stillNanoseconds: UInt64)? {
        let mark = Mark(
            attempt: flight.attempt,
            isUnanswered: flight.isUnanswered,
            pieces: pieces.load(ordering: .relaxed),
            uploadedPieces: uploadedPieces
        )
        let chain = state.withLock { $0.chain }
        let isHeldUp =
            chain?.isHeldUpByReaders == true
            || isStoring.load(ordering: .relaxed) && !Mutant.blamesTheOriginForTheDisk.isOn
        chain?.dismissStill(for: idleNanoseconds, nowNanoseconds: nowNanoseconds)
        return state.withLock { state in
            guard !state.hasEnded else { return nil }
            let isYetToBeRead = state.chain != nil && !state.isReading
            if isHeldUp || isYetToBeRead || mark != state.seen {
                state.seen = mark
                state.seenNanoseconds = nowNanoseconds
            }
            return (mark, nowNanoseconds - min(nowNanoseconds, state.seenNanoseconds))
        }
    }

    /// The body that the leader delivers.
    var chain: BodyChain? {
        state.withLock { $0.chain }
    }

    func end() {
        state.withLock { state in
            state.hasEnded = true
            state.chain = nil
        }
    }
}
