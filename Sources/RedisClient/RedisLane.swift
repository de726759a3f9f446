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
}
