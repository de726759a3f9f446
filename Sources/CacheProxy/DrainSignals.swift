import Platform

/// A signal, and when it came on the monotonic clock.
struct ReceivedSignal: Sendable {
    let number: Int32
    let atNanoseconds: UInt64
}

/// Decides the effect of the signals that come during a drain.
struct DrainSignals {
    enum Effect: Hashable, Sendable {
        /// The signal that began the drain came once more: nothing changes.
        case repeats
        /// Running responses are cut.
        case endsNow
        case reopensLog
        /// The proxy ends anyway: it reads no other configuration.
        case isIgnored
    }

    /// Within this time of the first, a signal to end is a copy of it.
    ///
    /// `timeout` and some supervisors send one signal twice: to the process, and to its group.
    static let copyNanoseconds: UInt64 = 1_000_000_000

    /// When the signal came that began the drain.
    let sinceNanoseconds: UInt64

    func effect(of signal: ReceivedSignal) -> Effect {
        switch signal.number {
        case SIGTERM, SIGINT:
            let isCopy =
                signal.atNanoseconds < sinceNanoseconds &+ Self.copyNanoseconds
                && !Mutant.endsByACopy.isOn
            return isCopy ? .repeats : .endsNow
        case SIGUSR1: return .reopensLog
        default: return .isIgnored
        }
    }
}
