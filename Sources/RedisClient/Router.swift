import Platform
internal import RESP
internal import Synchronization

/// Finds the server of a command, and asks for the servers when they may have changed.
///
/// The questions run in the background, as steps on the thread of the loop.
final class Router: Sendable {
    /// The limit for each step of a question.
    private static let questionNanoseconds: UInt64 = 500_000_000

    private struct State: Sendable {
        var directory: Directory
        var counts = RedisCounts()
    }

    let loop: RedisLoop
    private let state: Mutex<State>

    init(_ url: RedisURL, _ loop: RedisLoop) {
        self.loop = loop
        state = Mutex(State(directory: Directory(url)))
    }

    /// The redirections and questions so far.
    var counts: RedisCounts { state.withLock { $0.counts } }

    /// The server for a slot.
    ///
    /// - Throws: The reason why there is no master; `masterUnknown` before the first answer.
    func route(for slot: UInt16?) throws(RedisError) -> NodeAddress {
        let (server, failure, question) = state.withLock { state in
            let question = state.directory.wanted(now: monotonicNanoseconds())
            return (state.directory.server(for: slot), state.directory.lastFailure, question)
        }
        ask(question)
        if let server { return server }
        throw failure ?? RedisError(.masterUnknown, detail: "No sentinel has named a master yet")
    }

    /// The redirection in a reply of a cluster; the servers are asked for if a slot has moved.
    func redirection(_ reply: RESPValue, from server: NodeAddress) -> Redirection? {
        guard let redirection = Redirection(reply, from: server) else { return nil }
        let (isFollowed, question) = state.withLock { state in
            guard state.directory.isCluster else { return (false, nil as Directory.Question?) }
            state.counts.redirections += 1
            let now = monotonicNanoseconds()
            return (true, state.directory.redirected(redirection, by: server, now: now))
        }
        ask(question)
        return isFollowed ? redirection : nil
    }

    /// A failure may mean that another server has taken over.
    ///
    /// The address of a single server may lead to its successor by now, and a connection that works
    /// would stay with the old one, which has become a replica.
    func note(_ error: RedisError, of server: NodeAddress, on lane: RedisLane) {
        switch error.code {
        case .unreachable, .timedOut, .cut, .suspended, .readOnly, .clusterDown, .loading: break
        default: return
        }
        let (question, isAlone) = state.withLock { state in
            let question = state.directory.failed(server, now: monotonicNanoseconds())
            return (question, state.directory.isAlone)
        }
        ask(question)
        if isAlone, error.code == .readOnly || error.code == .loading {
            loop.leave(NodeKey(server, lane))
        }
    }
}

// MARK: - Questions

extension Router {
    private func ask(_ question: Directory.Question?) {
        guard let question else { return }
        let name = state.withLock { state in
            state.counts.refreshes += 1
            return state.directory.masterName
        }
        if let name {
            let command = RESPCommand("SENTINEL", key: nil, "get-master-addr-by-name", name)
            perform(command, NodeKey(question.address, isSentinel: true)) { outcome in
                self.sentinelAnswered(outcome, by: question.address)
            }
        } else {
            let command = RESPCommand("CLUSTER", key: nil, "SLOTS")
            perform(command, NodeKey(question.address)) { outcome in
                let reply = try? outcome.get()
                self.state.withLock { $0.directory.slotsAnswered(reply, by: question.address) }
            }
        }
    }

    private func sentinelAnswered(
        _ outcome: Result<RESPValue, RedisError>,
        by sentinel: NodeAddress
    ) {
        let named = state.withLock { $0.directory.sentinelAnswered(outcome, by: sentinel) }
        guard let named else { return }
        perform(RESPCommand("ROLE"), NodeKey(named)) { outcome in
            self.state.withLock { $0.directory.roleAnswered(outcome, by: named) }
        }
    }

    /// Sends a command of the client itself.
    private func perform(
        _ command: RESPCommand,
        _ key: NodeKey,
        follow: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        let sink = FollowUp { outcome in follow(outcome.map { $0[0] }) }
        let deadline = monotonicNanoseconds() + Self.questionNanoseconds
        loop.send(Batch([command], deadline: deadline, sink: sink), to: key)
    }
}
