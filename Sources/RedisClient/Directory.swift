internal import RESP

/// The servers that a client knows, and the moment to ask for them again.
///
/// A pure value. At most one question is under way, and at most one begins in `refreshNanoseconds`.
///
/// Invariants:
/// 1. `seeds` is not empty.
struct Directory: Sendable {
    /// The next question for the servers, or the step after it.
    struct Question: Hashable, Sendable {
        let address: NodeAddress
        let isSentinel: Bool
    }

    static let refreshNanoseconds: UInt64 = 1_000_000_000

    private let arrangement: RedisURL.Arrangement
    private let seeds: [NodeAddress]
    private var map = ClusterMap()
    private var master: NodeAddress?
    /// Why the last question has named no master.
    private(set) var lastFailure: RedisError?
    private var isAsking = false
    private var lastMoment: UInt64?
    /// Counts the questions, so that another server is asked after a failure.
    private var turn = 0

    init(_ url: RedisURL) {
        arrangement = url.arrangement
        seeds = url.hosts
    }

    var masterName: String? {
        if case .sentinel(let name) = arrangement { name } else { nil }
    }

    /// Whether replies may redirect.
    var isCluster: Bool { arrangement == .cluster }

    /// Whether the server's own address is the only way to its successor.
    var isAlone: Bool { arrangement == .single }

    /// The server for a key's slot, or for a command without a key; `nil` if none is known yet.
    func server(for slot: UInt16?) -> NodeAddress? {
        switch arrangement {
        case .single: seeds[0]
        case .cluster: slot.flatMap { map[$0] } ?? map.masters.first ?? seeds[turn % seeds.count]
        case .sentinel: master
        }
    }

    // MARK: - Facts; each returns the question that follows

    /// A server redirected a command.
    mutating func redirected(
        _ redirection: Redirection,
        by server: NodeAddress,
        now: UInt64
    ) -> Question? {
        guard case .moved(let slot, let target) = redirection, isCluster else { return nil }
        map.move(slot, to: target)
        // The server that redirects knows the change; others may not know it yet.
        return ask(server, now: now)
    }

    /// A server could not be used: it may have been replaced.
    mutating func failed(_ server: NodeAddress, now: UInt64) -> Question? {
        switch arrangement {
        case .single: return nil
        case .cluster:
            let others = (map.masters + seeds).filter { $0 != server }
            return ask(others.isEmpty ? server : others[turn % others.count], now: now)
        case .sentinel: return ask(seeds[turn % seeds.count], now: now)
        }
    }

    /// Nothing is known yet, or what is known may be old.
    mutating func wanted(now: UInt64) -> Question? {
        switch arrangement {
        case .cluster where map.masters.isEmpty: ask(seeds[turn % seeds.count], now: now)
        case .sentinel where master == nil: ask(seeds[turn % seeds.count], now: now)
        default: nil
        }
    }

    private mutating func ask(_ server: NodeAddress, now: UInt64) -> Question? {
        guard !isAsking else { return nil }
        if let lastMoment, now >= lastMoment, now - lastMoment < Self.refreshNanoseconds {
            return nil
        }
        isAsking = true
        lastMoment = now
        turn += 1
        return Question(address: server, isSentinel: masterName != nil)
    }

    /// A question has its answer; `nil` stands for a failure.
    mutating func slotsAnswered(_ reply: RESPValue?, by server: NodeAddress) {
        isAsking = false
        if let reply, let map = ClusterMap(reply, from: server) { self.map = map }
    }

    /// A sentinel named a master, which must confirm it; returns the master to ask for its role.
    ///
    /// The question stays under way until `roleAnswered`.
    mutating func sentinelAnswered(
        _ outcome: Result<RESPValue, RedisError>,
        by sentinel: NodeAddress
    ) -> NodeAddress? {
        let reply = answer(outcome, of: sentinel)
        if let parts = reply?.elements, parts.count == 2, let host = parts[0].text, !host.isEmpty,
            let port = parts[1].text.flatMap({ UInt16($0) }), port > 0
        {
            return NodeAddress(host: host, port: port)
        }
        isAsking = false
        if reply != nil {
            let detail = "The sentinel \(sentinel) knows no master \(masterName ?? "")"
            lastFailure = RedisError(.refused, detail: detail)
        }
        return nil
    }

    /// A server that a sentinel named has told its role.
    mutating func roleAnswered(
        _ outcome: Result<RESPValue, RedisError>,
        by server: NodeAddress
    ) {
        isAsking = false
        guard let reply = answer(outcome, of: server) else { return }
        if reply.elements?.first?.text == "master" {
            master = server
        } else {
            // An old master that returns may be named until the sentinels have made it a replica.
            let detail = "The server \(server) is not a master, although a sentinel names it"
            lastFailure = RedisError(.readOnly, detail: detail)
        }
    }

    /// The reply; `nil` after a failure, which is noted, unless another sentinel may be up.
    private mutating func answer(
        _ outcome: Result<RESPValue, RedisError>,
        of server: NodeAddress
    ) -> RESPValue? {
        switch outcome {
        case .success(.error(let text)): lastFailure = RedisError(reply: text, from: server)
        case .success(let reply): return reply
        case .failure(let error):
            let isOut = [.unreachable, .timedOut, .cut].contains(error.code)
            if !isOut || turn >= seeds.count { lastFailure = error }
        }
        return nil
    }
}
