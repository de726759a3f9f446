import CacheEngineRedis
import RESP
import RedisClient

/// A server whose commands run in a model of Redis; a single command is a group of one.
protocol ModelServer: FleetServer {}

extension ModelServer {
    static var address: NodeAddress { NodeAddress(host: "model", port: 1) }

    func send(
        _ command: RESPCommand,
        within limit: Duration?,
        lane: RedisLane
    ) async throws(RedisError) -> RESPValue {
        let replies = try await together([command], by: [], within: limit, lane: lane)
        if case .error(let text) = replies[0] { throw RedisError(reply: text, from: Self.address) }
        return replies[0]
    }
}
