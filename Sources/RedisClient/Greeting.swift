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

    /// So many bytes of a user or a password tell that a text repeats it: a server may cut it.
    private static let secretBytesMax = 8

    let steps: [Step]
    /// The encoded commands.
    let bytes: [UInt8]
    /// The first bytes of the user and the password.
    private let secrets: [[UInt8]]

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
        let words = credentials.map { [$0.user, $0.password] } ?? []
        secrets = words.filter { !$0.isEmpty }.map { Array($0.utf8.prefix(Self.secretBytesMax)) }
    }

    /// The reason why the connection cannot be used; `nil` if the reply permits it.
    func fault(_ reply: RESPValue, to step: Step, from address: NodeAddress) -> RedisError? {
        guard case .error(let text) = reply else { return nil }
        let error = RedisError(reply: text, from: address)
        switch step {
        // A server that does not know AUTH repeats the words of the command.
        case .authenticate where error.code != .notPermitted && hasSecret(text):
            let word = text.prefix { $0.isASCII && $0.isUppercase }
            return RedisError(reply: "\(word) (text withheld)", from: address)
        // A name is a help for people; some servers have no such command.
        case .setName: return nil
        // A user that may not send PING may be permitted to send the commands of callers.
        case .ping where reply.isError("NOPERM"): return nil
        case .authenticate, .ping: return error
        }
    }

    private func hasSecret(_ text: String) -> Bool {
        secrets.contains { text.utf8.firstRange(of: $0) != nil }
    }
}
