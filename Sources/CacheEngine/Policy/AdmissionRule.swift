/// The limits that decide about admission.
enum AdmissionRule {
    /// The largest size of the window; only entries up to this size enter it.
    static func windowBytesMax(_ capacityBytes: Int) -> Int { capacityBytes / 100 }

    /// A larger entry must be worth all entries that it would displace, with or without the gate.
    static func largeBytesMin(_ capacityBytes: Int) -> Int { capacityBytes / 20 }

    /// The most consecutive requeues; the next slot is evicted even if it was hit.
    static let requeuesMax = 128

    /// The frequency from which a priority was computed.
    static func frequency(
        ofPriority priority: Double,
        chargeBytes: Int,
        _ objective: EvictionPolicy.Objective
    ) -> Int {
        Int((priority * SizeExponent(objective).power(of: chargeBytes)).rounded())
    }
}
