package import RESP

/// The limits of a client; every one holds for each server.
package struct RedisOptions: Hashable, Sendable {
    /// The limit for a connection: the name, TCP, the credentials and the first reply together.
    package var connectLimit: Duration
    /// The limit for a reply, unless the command has its own.
    package var readLimit: Duration
    /// The age of the oldest missing reply at which a server counts as hung.
    package var oldestReplyLimit: Duration
    /// The time without a connection and without commands after which a server is forgotten, with its
    /// breaker.
    ///
    /// So a server that left its cluster is not asked whether it is back.
    package var idleLimit: Duration
    /// The commands without a reply; more are refused.
    package var outstandingCountMax: Int
    /// The bytes of commands without a reply; more are refused.
    package var outstandingBytesMax: Int
    /// The sizes that a reply may have.
    package var replies: RESPLimits
    package var breaker: CircuitBreaker.Limits
    /// The name of the connections in the server's list; empty for no name.
    package var connectionName: String

    package init(
        connectLimit: Duration = .milliseconds(200),
        readLimit: Duration = .milliseconds(25),
        oldestReplyLimit: Duration = .milliseconds(250),
        idleLimit: Duration = .seconds(60),
        outstandingCountMax: Int = 4_096,
        outstandingBytesMax: Int = 32 << 20,
        replies: RESPLimits = RESPLimits(),
        breaker: CircuitBreaker.Limits = CircuitBreaker.Limits(),
        connectionName: String = ""
    ) {
        self.connectLimit = connectLimit
        self.readLimit = readLimit
        self.oldestReplyLimit = oldestReplyLimit
        self.idleLimit = idleLimit
        self.outstandingCountMax = outstandingCountMax
        self.outstandingBytesMax = outstandingBytesMax
        self.replies = replies
        self.breaker = breaker
        self.connectionName = connectionName
    }
}
