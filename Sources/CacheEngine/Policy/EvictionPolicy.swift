/// What the memory gives up first when room is needed.
public enum EvictionPolicy: Hashable, Sendable {
    /// Weighs how often an entry is asked for against the room it takes.
    case sizeAware(Objective)
    /// Weighted S3-FIFO: blind to size, simple, and good where all entries are alike.
    case s3FIFO

    /// What the size-aware policy tries to keep high.
    public enum Objective: String, Hashable, Sendable, CaseIterable {
        /// The share of requests answered from memory; large entries make way first.
        case requests
        /// Between the two others.
        case balanced
        /// The share of bytes answered from memory; size does not matter.
        case bytes
    }
}
