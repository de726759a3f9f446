import Platform
package import RESP
internal import Synchronization

/// A client of Redis or a server that speaks its protocol: one server, a cluster, or the master that
/// sentinels name.
///
/// One thread moves the bytes of all connections. Commands of many callers share a connection to
/// each server, so that they travel together. Every wait has a limit, and an error costs a caller at
/// most that limit.
package final class RedisClient: Sendable {
    /// The redirections of one command that are followed.
    private static let redirectionsMax = 3

    private let router: Router

    /// Starts the thread; connections are made when commands need them.
    package init(_ url: RedisURL, _ options: RedisOptions = RedisOptions()) throws(RedisError) {
        router = Router(url, try RedisLoop.start(options, url.credentials))
    }

    deinit { router.loop.post(.stop(FollowUp { _ in })) }

    /// Ends the thread; commands without a reply fail with `shutDown`.
    package func shutDown() async {
        _ = await withUnsafeContinuation { continuation in
            let sink = FollowUp { _ in continuation.resume(returning: ()) }
            if !router.loop.post(.stop(sink)) { continuation.resume(returning: ()) }
        }
    }

    /// The counts of all connections so far.
    package var counts: RedisCounts { router.counts + router.loop.counts }
}

// MARK: - Commands

extension RedisClient {
    /// Sends one command and waits for its reply, for at most `limit`.
    ///
    /// - Throws: `RedisError`, also for an error reply.
    package func send(
        _ command: RESPCommand,
        within limit: Duration? = nil,
        lane: RedisLane = .data
    ) async throws(RedisError) -> RESPValue {
        let route = try router.route(for: command.slot)
        let trip = trip(limit, lane)
        let replies = try await exchange([command], with: route, trip)
        let (reply, server) = try await settle(replies[0], to: command, from: route, trip)
        if case .error(let text) = reply { throw RedisError(reply: text, from: server) }
        return reply
    }

    /// Sends one command and returns at once: commands that are sent later on the same lane come
    /// after it, unless the connection is lost.
    ///
    /// `follow` gets the reply, or the error that it is, on the caller's thread or that of the client;
    /// it must not block. A redirection is not followed: it tells where the next command goes.
    package func post(
        _ command: RESPCommand,
        within limit: Duration,
        lane: RedisLane = .data,
        follow: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        let server: NodeAddress
        do throws(RedisError) { server = try router.route(for: command.slot) } catch {
            return follow(.failure(error))
        }
        let sink = FollowUp { [router] outcome in
            let reply = outcome.flatMap { replies -> Result<RESPValue, RedisError> in
                guard case .error(let text) = replies[0] else { return .success(replies[0]) }
                _ = router.redirection(replies[0], from: server)
                return .failure(RedisError(reply: text, from: server))
            }
            if case .failure(let error) = reply { router.note(error, of: server, on: lane) }
            follow(reply)
        }
        let deadline = trip(limit, lane).deadline
        let batch = Batch([command], deadline: deadline, sink: sink)
        router.loop.send(batch, to: NodeKey(server, lane))
    }

    /// Sends commands to the server of `key` in one piece, and returns their replies in order; an
    /// error reply is a value.
    ///
    /// A command without a key, such as WAIT, so concerns the commands before it. A redirected
    /// command is sent again to the server that its reply names, with the commands without a key
    /// that follow it; the others are not repeated.
    package func together(
        _ commands: [RESPCommand],
        by key: [UInt8],
        within limit: Duration? = nil,
        lane: RedisLane = .data
    ) async throws(RedisError) -> [RESPValue] {
        // An exchange without commands would have no reply, and those after it would be taken for it.
        guard !commands.isEmpty else { return [] }
        var server = try router.route(for: KeySlot.slot(of: key))
        let trip = trip(limit, lane)
        var groups = [CommandGroup(commands, to: server)]
        var replies = [RESPValue](repeating: .nilBulk, count: commands.count)
        for _ in 0...Self.redirectionsMax {
            var redirected: [CommandGroup] = []
            for group in groups {
                let some = try await exchange(group.commands, with: group.server, trip)
                group.put(some, into: &replies)
                for case .error(let text) in some {
                    let error = RedisError(reply: text, from: group.server)
                    router.note(error, of: group.server, on: lane)
                }
                redirected += group.redirected(by: some) {
                    router.redirection($0, from: group.server)
                }
            }
            guard let first = redirected.first else { return replies }
            (groups, server) = (redirected, first.server)
        }
        let detail = "The server \(server) redirects a command that was redirected before"
        throw RedisError(.redirected, detail: detail)
    }

    /// Whether the breaker of a server is open.
    package var isSuspended: Bool {
        router.loop.allNodes.contains { node in
            node.admission.withLock { $0.suspension != nil }
        }
    }
}

// MARK: - One exchange

extension RedisClient {
    /// The limits of one call, redirections included.
    private struct Trip: Sendable {
        let deadline: UInt64
        let lane: RedisLane
    }

    private func trip(_ limit: Duration?, _ lane: RedisLane) -> Trip {
        let nanoseconds = (limit ?? router.loop.options.readLimit).nanoseconds
        return Trip(deadline: monotonicNanoseconds() &+ nanoseconds, lane: lane)
    }

    private func exchange(
        _ commands: [RESPCommand],
        with server: NodeAddress,
        _ trip: Trip
    ) async throws(RedisError) -> [RESPValue] {
        let outcome = await Waiter.outcome { waiter in
            let batch = Batch(commands, deadline: trip.deadline, sink: waiter)
            router.loop.send(batch, to: NodeKey(server, trip.lane))
        }
        if case .failure(let error) = outcome { router.note(error, of: server, on: trip.lane) }
        return try outcome.get()
    }

    /// Follows the redirections of a reply; returns the last reply and the server that sent it.
    private func settle(
        _ first: RESPValue,
        to command: RESPCommand,
        from server: NodeAddress,
        _ trip: Trip
    ) async throws(RedisError) -> (reply: RESPValue, server: NodeAddress) {
        var (reply, server) = (first, server)
        var followed = 0
        while case .error(let text) = reply {
            guard let redirection = router.redirection(reply, from: server) else {
                let error = RedisError(reply: text, from: server)
                router.note(error, of: server, on: trip.lane)
                break
            }
            guard followed < Self.redirectionsMax else {
                let detail = "The server \(server) redirects a command that was redirected before"
                throw RedisError(.redirected, detail: detail)
            }
            followed += 1
            server = redirection.target
            if case .ask = redirection, !Mutant.asksWithoutAsking.isOn {
                reply = try await exchange([RESPCommand("ASKING"), command], with: server, trip)[1]
            } else {
                reply = try await exchange([command], with: server, trip)[0]
            }
        }
        return (reply, server)
    }
}
