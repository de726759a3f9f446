/// The order in which the memory evicts entries.
public enum EvictionPolicy: Hashable, Sendable {
    /// Weighs the frequency of an entry's requests against its size.
    case sizeAware(Objective)

    /// The ratio that the policy maximises.
    public enum Objective: String, Hashable, Sendable, CaseIterable {
        /// The share of requests answered from memory; large entries are evicted first.
        case requests
        /// A compromise between the two others, nearer to `requests`.
        case balanced
        /// The share of bytes answered from memory; the size of an entry is ignored.
        case bytes
    }

    /// The objective of the policy.
    var objective: Objective {
        switch self {
        case .sizeAware(let objective): objective
        }
    }
}
