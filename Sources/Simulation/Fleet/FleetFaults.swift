/// The kinds of faults in the life of a simulated fleet.
package struct FleetFaults: OptionSet, Sendable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }

    /// The replica is behind its master.
    package static let lag = Self(rawValue: 1 << 0)
    /// The replica becomes the master; what it does not have is lost.
    package static let failover = Self(rawValue: 1 << 1)
    /// After a failover, some machines still talk to the old master.
    package static let twoMasters = Self(rawValue: 1 << 2)
    /// Records, leases and the log itself vanish.
    package static let eviction = Self(rawValue: 1 << 3)
    /// LOADING, OOM, READONLY, NOSCRIPT.
    package static let errors = Self(rawValue: 1 << 4)
    /// Requests and replies are lost.
    package static let losses = Self(rawValue: 1 << 5)
    /// Requests are performed seconds after their callers have given up.
    package static let lateness = Self(rawValue: 1 << 6)
    /// Exchanges take longer than their limits.
    package static let delays = Self(rawValue: 1 << 7)
    /// One machine, or all of them, cannot reach the servers.
    package static let outages = Self(rawValue: 1 << 8)
    /// FLUSHALL.
    package static let flush = Self(rawValue: 1 << 9)
    /// The log loses its oldest entries.
    package static let trimming = Self(rawValue: 1 << 10)
    /// The server's clock jumps by up to 90 s.
    package static let serverClock = Self(rawValue: 1 << 11)
    /// The machines' clocks differ by up to 90 s.
    package static let machineClocks = Self(rawValue: 1 << 12)
    /// Machines are stopped, killed and started.
    package static let restarts = Self(rawValue: 1 << 13)

    package static let all = Self(rawValue: 1 << 14 - 1)

    /// The faults under which Redis keeps what it is told, and the time is steady.
    private static let mild: Self = [.lag, .trimming, .machineClocks]

    /// Every fault for even seeds; some of them for the others, and for half of these mild ones.
    static func seeded(_ seed: UInt64, _ dice: Dice) -> FleetFaults {
        let some = Self(rawValue: dice.below(1 << 14))
        return switch seed % 4 {
        case 1: some
        case 3: some.intersection(.mild)
        default: .all
        }
    }

    /// Whether the time of the fleet is that of one clock, which does not jump.
    var hasSteadyTime: Bool { isDisjoint(with: [.serverClock, .delays]) }

    /// Whether Redis keeps what it is told.
    var keepsRecords: Bool {
        isDisjoint(with: [
            .failover, .eviction, .errors, .losses, .lateness, .delays, .outages, .flush,
            .serverClock, .restarts,
        ])
    }

    func weather(_ dice: Dice) -> ModelLink.Weather {
        var weather = ModelLink.Weather()
        if contains(.losses) { (weather.lostRequests, weather.lostReplies) = (15, 15) }
        if contains(.lateness) { weather.lateRequests = 15 }
        weather.slow = 100
        if contains(.delays) { (weather.slow, weather.delayMilliseconds) = (200, 60) }
        if contains(.lag) { weather.replicatedOneIn = 2 + dice.below(8) }
        return weather
    }
}
