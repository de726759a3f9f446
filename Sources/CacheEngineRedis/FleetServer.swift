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
