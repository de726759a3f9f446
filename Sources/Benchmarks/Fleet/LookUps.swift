/// Look-ups in the shared store, some of which are lost: they fail or take too long, and end at the
/// origin.
struct LookUps {
    /// With more losses, the times of the others say little: the slow look-ups are missing.
    static let lostShareMax = 0.1

    private(set) var count = 0
    private(set) var lost = 0

    mutating func add(isHit: Bool) {
        count += 1
        if !isHit { lost += 1 }
    }

    var lostShare: Double { Double(lost) / Double(max(1, count)) }

    /// Throws if there was no look-up, or if too many were lost.
    func requireFewLost() throws {
        try WorkloadFailure.require(
            count > 0 && lostShare <= Self.lostShareMax,
            "fleet: \(lost) of \(count) look-ups in the shared store were lost"
        )
    }
}

extension Sample {
    /// The share of the look-ups that ended at the origin.
    static func lostLookUps(_ share: Double) -> Sample {
        lowerIsBetter("lost_look_ups", share, .share)
    }
}
