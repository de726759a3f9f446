package import RESP
package import RedisClient

/// The servers of a fleet as its machines ask them: a client of Redis, or a model in its place.
package protocol FleetServer: Sendable {
    /// Sends one command and waits for its reply.
    ///
    /// - Throws: `RedisError`, also for an error reply.
    func send(
        _ command: RESPCommand,
        within limit: Duration?,
        lane: RedisLane
    ) async throws(RedisError) -> RESPValue

    /// Sends one command and returns at once: commands that are sent later on the same lane come
    /// after it.
    ///
    /// `follow` gets the reply, also if no task waits for it any more.
    func post(
        _ command: RESPCommand,
        within limit: Duration,
        lane: RedisLane,
        follow: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    )

    /// Sends commands to the server of `key` in one piece, and returns their replies in order; an
    /// error reply is a value.
    func together(
        _ commands: [RESPCommand],
        by key: [UInt8],
        within limit: Duration?,
        lane: RedisLane
    ) async throws(RedisError) -> [RESPValue]

    /// Whether a server is not asked for a while, because it failed.
    var isSuspended: Bool { get }

    /// The commands so far.
    var counts: RedisCounts { get }

    /// Commands without a reply fail from now on.
    func shutDown() async
}

extension FleetServer {
    /// Sends commands that run scripts, and sends them again with the scripts' texts if the server
    /// has not seen one of them; `limit` is asked for each time.
    func runScripts(
        by key: [UInt8],
        within limit: @autoclosure () -> Duration?,
        lane: RedisLane,
        _ commands: (_ isWhole: Bool) -> [RESPCommand]
    ) async throws(RedisError) -> [RESPValue] {
        let replies = try await together(commands(false), by: key, within: limit(), lane: lane)
        guard replies.contains(where: { $0.isError("NOSCRIPT") }) else { return replies }
        return try await together(commands(true), by: key, within: limit(), lane: lane)
    }

    func send(_ command: RESPCommand) async throws(RedisError) -> RESPValue {
        try await send(command, within: nil, lane: .data)
    }

    func together(
        _ commands: [RESPCommand],
        by key: [UInt8]
    ) async throws(RedisError) -> [RESPValue] {
        try await together(commands, by: key, within: nil, lane: .data)
    }
}

extension RedisClient: FleetServer {}
