internal import RESP

/// The place where the replies to a batch go.
protocol ReplySink: AnyObject, Sendable {
    /// Called once, on the thread of the loop, outside every lock.
    func finish(_ outcome: Result<[RESPValue], RedisError>)
}

/// Commands that are sent together to one server, and get their replies together.
struct Batch: Sendable {
    /// The encoded commands.
    let bytes: [UInt8]
    /// The commands, and so the replies.
    let count: Int
    /// The moment, in nanoseconds, after which the caller does not wait.
    let deadline: UInt64
    let sink: any ReplySink

    init(_ commands: [RESPCommand], deadline: UInt64, sink: any ReplySink) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(commands.reduce(0) { $0 + $1.encodedBytes })
        for command in commands { command.append(to: &bytes) }
        self.bytes = bytes
        self.deadline = deadline
        self.sink = sink
        count = commands.count
    }
}
