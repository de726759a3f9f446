/// The keys of one log; the braces put all of them into one slot of a cluster.
///
/// The version stands in front, so that a later layout never meets this one.
package struct LogKeys: Hashable, Sendable {
    package let meta: String
    package let stream: String
    /// The places that the machines report.
    package let machines: String

    package init(namespace: String) {
        meta = "ce1:\(namespace):{log}:meta"
        stream = "ce1:\(namespace):{log}:s"
        machines = "ce1:\(namespace):{log}:m"
    }

    /// The keys in the order of the scripts.
    package var both: [[UInt8]] { [Array(meta.utf8), Array(stream.utf8)] }
}
