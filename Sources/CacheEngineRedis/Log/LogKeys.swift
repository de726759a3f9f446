/// The keys of one log; the braces put both into one slot of a cluster.
///
/// The version stands in front, so that a later layout never meets this one.
struct LogKeys: Hashable, Sendable {
    let meta: String
    let stream: String

    init(namespace: String) {
        meta = "ce1:\(namespace):{log}:meta"
        stream = "ce1:\(namespace):{log}:s"
    }

    /// The keys in the order of the scripts.
    var both: [String] { [meta, stream] }
}
