/// The treatment of one call by a nemesis.
public enum Misdeed: Hashable, Sendable {
    /// The call proceeds unchanged.
    case none
    /// The call throws and has no effect.
    case throwsBefore
    /// The call has its effect and then throws.
    case throwsAfter
    /// The call waits for its release and then has its effect.
    case hangsBefore(Cancellation)
    /// The call has its effect and then waits for its release before it returns.
    case hangsAfter(Cancellation)
    /// The call waits for the given number of seconds of the clock and then proceeds.
    case isSlow(seconds: Double)
    /// The call proceeds and returns a false result.
    case lies(Lie)

    /// The reaction of a hung call to the cancellation of its task.
    public enum Cancellation: Hashable, Sendable {
        /// The call ends with `CancellationError`.
        case honoured
        /// The call hangs until it is released.
        case ignored
    }

    /// A kind of false result.
    public enum Lie: Hashable, Sendable {
        /// A store returns the entry of another key; an origin answers 304 to an unconditional
        /// request.
        case mixesUp
        /// A store returns a damaged entry; an origin's body ends early with an error.
        case damages
        /// A store returns a wrong count; an origin announces a wrong length.
        case miscounts
    }
}

/// One call to a nemesis.
public struct NemesisCall: Hashable, Sendable {
    /// The called method.
    public enum Method: String, Hashable, Sendable, CaseIterable {
        /// `CacheStore.entry(for:)`
        case entry
        /// `CacheStore.store(_:)`
        case store
        /// `CacheStore.remove(_:)`
        case remove
        /// `CacheStore.removeAll(in:)`
        case removeAll
        /// `CacheStore.usage()`
        case usage
        /// `CacheStore.flush()`
        case flush
        /// `Origin.fetch(_:)`
        case fetch
    }

    /// The called method.
    public let method: Method
    /// The number of calls of this method so far, including this one.
    public let number: Int
    /// The key or the URL of the call as text, or empty if the call has neither.
    public let subject: String
}

/// The rule by which a nemesis selects calls and misdeeds.
public struct NemesisPlan: Sendable {
    let seed: UInt64
    let misdeed: @Sendable (NemesisCall, inout SeededRandom) -> Misdeed

    private init(
        seed: UInt64,
        _ misdeed: @escaping @Sendable (NemesisCall, inout SeededRandom) -> Misdeed
    ) {
        self.seed = seed
        self.misdeed = misdeed
    }

    /// A plan under which every call proceeds.
    public static let harmless = NemesisPlan(seed: 0) { _, _ in .none }

    /// A plan in which `script` chooses the misdeed for each call.
    public static func scripted(
        _ script: @escaping @Sendable (_ call: NemesisCall) -> Misdeed
    ) -> NemesisPlan {
        NemesisPlan(seed: 0) { call, _ in script(call) }
    }

    /// A plan with one of `misdeeds` for one call in `rate`, determined by `seed`.
    public static func seeded(
        _ seed: UInt64,
        oneIn rate: Int,
        of misdeeds: [Misdeed] = NemesisPlan.everyMisdeed
    ) -> NemesisPlan {
        NemesisPlan(seed: seed) { _, random in
            guard Int.random(in: 0..<max(1, rate), using: &random) == 0 else { return .none }
            return misdeeds.randomElement(using: &random) ?? .none
        }
    }

    /// One example of every kind of misdeed.
    public static let everyMisdeed: [Misdeed] = [
        .throwsBefore, .throwsAfter,
        .hangsBefore(.honoured), .hangsBefore(.ignored),
        .hangsAfter(.honoured), .hangsAfter(.ignored),
        .isSlow(seconds: 0.5), .isSlow(seconds: 30),
        .lies(.mixesUp), .lies(.damages), .lies(.miscounts),
    ]
}
