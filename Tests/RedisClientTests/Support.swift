import Platform
import RESP
import Synchronization

@testable import RedisClient

/// Remembers the outcome of one batch.
final class OutcomeBox: ReplySink {
    private let outcomes = Mutex<[Result<[RESPValue], RedisError>]>([])

    func finish(_ outcome: Result<[RESPValue], RedisError>) {
        outcomes.withLock { $0.append(outcome) }
    }
}

extension Batch {
    /// A batch for tests of values, whose bytes are `count` commands.
    init(_ name: String, count: Int = 1, deadline: UInt64 = .max) {
        let command = RESPCommand("ECHO", key: nil, name)
        let commands = Array(repeating: command, count: count)
        self.init(commands, deadline: deadline, sink: OutcomeBox())
    }

    /// The word of its first command.
    var name: String {
        var parser = RESPParser()
        guard case .value(let value, _) = parser.parse(bytes.span) else {
            return ""
        }
        return value.elements?.last?.text ?? ""
    }
}

extension NodeAddress {
    init(_ port: UInt16) { self.init(host: "127.0.0.1", port: port) }
}

extension RedisOptions {
    /// Limits that a busy machine keeps too.
    static var patient: RedisOptions {
        RedisOptions(
            connectLimit: .seconds(20),
            readLimit: .seconds(20),
            oldestReplyLimit: .seconds(20)
        )
    }
}

extension RedisClient {
    convenience init(_ url: String, _ options: RedisOptions = .patient) throws {
        try self.init(RedisURL(url), options)
    }

    /// The replies to commands that are sent at the same time, each to the server of its key.
    func replies(_ commands: [RESPCommand]) async throws -> [RESPValue] {
        try await withThrowingTaskGroup(of: (Int, RESPValue).self) { tasks in
            for (place, command) in commands.enumerated() {
                tasks.addTask { (place, try await self.send(command)) }
            }
            var replies = [RESPValue](repeating: .nilBulk, count: commands.count)
            for try await (place, reply) in tasks { replies[place] = reply }
            return replies
        }
    }

    /// The code of the error that a command ends with; `nil` if it has a reply.
    func code(
        of command: RESPCommand = RESPCommand("GET", key: "k"),
        within limit: Duration? = nil
    ) async -> RedisError.Code? {
        do {
            _ = try await send(command, within: limit)
            return nil
        } catch {
            return error.code
        }
    }
}
