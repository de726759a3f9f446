internal import RESP

/// The first commands of a connection, and the meaning of their replies.
///
/// The last one is PING: only a server that answers it gets commands of callers.
struct Greeting: Sendable {
    enum Step: Hashable, Sendable {
        case authenticate
        case setName
        case ping
    }

    let steps: [Step]
    /// The encoded commands.
    let bytes: [UInt8]

    init(_ credentials: RedisURL.Credentials?, connectionName: String) {
        var steps: [Step] = []
        var bytes: [UInt8] = []
        if let credentials {
            var command = RESPCommand("AUTH")
            if !credentials.user.isEmpty { command.add(credentials.user) }
            command.add(credentials.password)
            command.append(to: &bytes)
            steps.append(.authenticate)
        }
        if !connectionName.isEmpty {
            RESPCommand("CLIENT", key: nil, "SETNAME", connectionName).append(to: &bytes)
            steps.append(.setName)
        }
        RESPCommand("PING").append(to: &bytes)
        self.steps = steps + [.ping]
        self.bytes = bytes
    }

    /// The reason why the connection cannot be used; `nil` if the reply permits it.
    static func fault(
        _ reply: RESPValue,
        to step: Step,
        from address: NodeAddress
    ) -> RedisError? {
        guard case .error(let text) = reply else { return nil }
        switch step {
        case .authenticate: return RedisError(reply: text, from: address)
        // A name is a help for people; some servers have no such command.
        case .setName: return nil
        // A user that may not send PING may be permitted to send the commands of callers.
        case .ping where reply.isError("NOPERM"): return nil
        case .ping: return RedisError(reply: text, from: address)
        }
    }
}
