/// One of several connections to a server: a long command delays only the commands of its own lane.
package enum RedisLane: Hashable, Sendable {
    /// Small commands.
    case data
    /// Commands with large values.
    case bulk
    /// Commands that wait on the server on purpose, such as XREAD BLOCK and WAIT.
    ///
    /// The age of a missing reply does not count here; the limit of each command does.
    case blocking
    /// Commands that are followed by WAIT, and so wait for replicas; a read that blocks does not
    /// delay them.
    ///
    /// The age of a missing reply does not count here either.
    case appending

    /// Whether the age of a missing reply says nothing about the server.
    var waitsOnPurpose: Bool { self == .blocking || self == .appending }
}
