/// The keys of one log; the braces put all of them into one slot of a cluster.
///
/// The version stands in front, so that a later layout never meets this one.
struct LogKeys: Hashable, Sendable {
    let meta: String
    let stream: String
    /// The places that the machines report.
    let machines: String

    init(namespace: String) {
        meta = "ce1:\(namespace):{log}:meta"
        stream = "ce1:\(namespace):{log}:s"
        machines = "ce1:\(namespace):{log}:m"
    }

    /// The keys in the order of the scripts.
    var both: [[UInt8]] { [Array(meta.utf8), Array(stream.utf8)] }
}
