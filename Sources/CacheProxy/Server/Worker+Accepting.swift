import Platform

/// Accepting connections, and making room for them.
extension Worker {
    /// A connection that waits for its client, and the time it began to wait.
    struct Candidate {
        let id: ConnectionID
        let since: Int64
    }

    /// Connections accepted in one event, so that open ones get their turn.
    static let acceptsMax = 64
    /// The time that a connection must have waited before it makes room for another: the first
    /// bytes of a new one may be in transit.
    static let waitMillisecondsMin: Int64 = 500
    /// Candidates of one search, and the time until the next search: both bound the cost of a flood
    /// of new connections.
    static let candidatesMax = 64
    static let searchMilliseconds: Int64 = 100

    func startListening() {
        guard !isListening, listener >= 0 else { return }
        isListening = poller.watchInput(listener, token: Poller.listenerToken)
    }

    private func pauseListening() {
        guard isListening else { return }
        poller.forget(listener)
        isListening = false
    }

    func stopListening() {
        guard listener >= 0 else { return }
        pauseListening()
        closeDescriptor(listener)
        listener = -1
    }

    /// Accepts waiting connections; returns whether more may wait.
    @discardableResult
    func accept() -> Bool {
        for _ in 0..<Self.acceptsMax {
            if openCount >= configuration.connectionsMax {
                guard hasClientWaiting else { return false }
                guard makeRoom() else {
                    pauseListening()
                    return false
                }
                // The limit was lowered: one place is not enough for another client.
                let isFull = openCount >= configuration.connectionsMax
                if isFull, !Mutant.staysAboveALowerLimit.isOn { continue }
            }
            if let accepted = AcceptedSocket(from: listener) {
                open(accepted.descriptor, accepted.peer)
                continue
            }
            let code = errno
            if code == ECONNABORTED || code == EINTR { continue }
            // Out of descriptors or memory: an idle connection ends, or accepting waits for the next
            // sweep.
            guard [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(code), hasClientWaiting else {
                return false
            }
            guard makeRoom() else {
                pauseListening()
                return false
            }
        }
        return true
    }

    /// Whether a client waits to be accepted; only then is room made.
    var hasClientWaiting: Bool {
        var socket = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        return poll(&socket, 1, 0) > 0
    }

    private func open(_ socket: Int32, _ peer: IPAddress?) {
        var course = ConnectionMachine.Course.open
        if let peers = configuration.proxyPeers {
            guard peers.contains(peer) else { return refusePeer(socket, peer) }
            course = .announcing
        }
        let index: Int
        if let reused = free.popLast() {
            index = reused
        } else {
            index = connections.count
            connections.append(nil)
            deadlines.append(.max)
            generations.append(0)
        }
        let id = ConnectionID(index: UInt32(index), generation: generations[index])
        guard poller.watch(socket, token: id.token) else {
            closeDescriptor(socket)
            free.append(index)
            return
        }
        let connection = Connection(
            socket: socket,
            id: id,
            peer: peer,
            discardedBytesMax: configuration.discardedBytesMax,
            beginsAs: course
        )
        connections[index] = connection
        change(connection, .start(.head))
        openCount += 1
        counters.add(1, to: .connections)
        counters.add(1, to: .connectionsOpen)
    }
}

// MARK: - Making room

extension Worker {
    /// Closes the connection that has waited longest for its client; returns `false` if none waits.
    ///
    /// Above a limit that was lowered, searches follow each other at once, so that the new client
    /// does not wait long. Each closes a connection, or accepting pauses.
    private func makeRoom() -> Bool {
        if closeCandidate() { return true }
        let isAboveLimit = openCount > configuration.connectionsMax
        guard isAboveLimit || now >= nextCandidateSearch else { return false }
        nextCandidateSearch = now + Self.searchMilliseconds
        findCandidates()
        return closeCandidate()
    }

    private func closeCandidate() -> Bool {
        while let candidate = candidates.popLast() {
            guard let connection = connection(candidate.id),
                waitingSince(connection) == candidate.since
            else { continue }
            // Its next request may have arrived, or a part of it.
            let (requests, input) = (counters[.requests], inputSoFar(connection))
            connection.machine.assumeInput()
            advance(connection)
            if connection.machine.isClosed { return true }
            guard counters[.requests] == requests, inputSoFar(connection) == input,
                waitingSince(connection) != nil
            else { continue }
            counters.add(1, to: .displaced)
            close(connection)
            return true
        }
        return false
    }

    /// Values of which one changes when a part of a request, a PROXY header, or the end of content
    /// that is dropped arrives.
    private func inputSoFar(
        _ connection: Connection
    ) -> (heldBytes: Int, isAnnouncing: Bool, hasContent: Bool) {
        if Mutant.closesClientsThatBegin.isOn { return (0, false, false) }
        return (
            connection.pending?.bytes.count ?? 0, connection.machine.course == .announcing,
            connection.content != nil
        )
    }

    private func findCandidates() {
        let latest = now - Self.waitMillisecondsMin
        for case let connection? in connections {
            guard let since = waitingSince(connection), since <= latest else { continue }
            let isFull = candidates.count == Self.candidatesMax
            if isFull, since >= candidates[0].since { continue }
            let place = candidates.firstIndex { $0.since <= since } ?? candidates.count
            candidates.insert(Candidate(id: connection.id, since: since), at: place)
            if isFull { candidates.removeFirst() }
        }
    }

    /// The time since which the connection waits for its client; `nil` while it is busy.
    ///
    /// Bytes of content that is dropped begin its limit anew, and not its wait.
    private func waitingSince(_ connection: Connection) -> Int64? {
        guard let deadline = connection.machine.idleDeadline else { return nil }
        if deadline == .content {
            return isTakingResponse(connection) ? nil : connection.answeredAt
        }
        return deadlines[Int(connection.id.index)] - limit(deadline)
    }

    /// Whether the system still sends the response of a connection that only drops content.
    ///
    /// A close would cut it, because more content makes the system reset the connection. A client
    /// that reads nothing has no more than the time for that.
    private func isTakingResponse(_ connection: Connection) -> Bool {
        now - connection.answeredAt < limit(.write)
            && SendProgress.isKnownToHoldBytes(connection.socket)
    }
}
