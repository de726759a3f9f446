import CProxyShims
import CacheEngine
import CurlOrigin
import Platform

/// Finding a connection for an exchange.
///
///     start ──permit──▶ idle connection ─────────────────────▶ request
///                  └──▶ addresses ──▶ connect, one by one ───▶ request
extension UpstreamTable {
    func start(_ call: UpstreamCall) {
        guard isOpen else { return call.exchange.finish(.failure(UpstreamFailure.shutDown)) }
        do throws(CacheError) {
            let exchange = UpstreamExchange(
                call,
                host(of: call),
                try upload(of: call),
                now: nanoseconds
            )
            add(exchange)
            exchange.host.exchangeCount += 1
            takePermit(exchange)
        } catch {
            call.exchange.finish(.failure(error))
        }
    }

    private func upload(of call: UpstreamCall) throws(CacheError) -> UploadPipe? {
        guard call.isSent else { return nil }
        let content = try Self.content(of: call.request)
        if case .none = content { return nil }
        return UploadPipe(
            content,
            windowBytesMax: call.origin.configuration.limits.windowBytesMax,
            onBytes: { [mailbox, id = call.exchange.id] in mailbox.resumeUpload(id) }
        )
    }

    private static func content(
        of request: OriginRequest
    ) throws(CacheError) -> UploadPipe.Content {
        let framing = try request.framing()
        guard let body = request.body, framing != .none, framing != .length(0) else { return .none }
        if let chunk = body.availableChunk { return .chunk(chunk) }
        if case .length(let count) = framing { return .stream(body, count: count) }
        return .stream(body, count: nil)
    }

    private func host(of call: UpstreamCall) -> UpstreamHost {
        // Most exchanges are with the host of the one before.
        if let lastHost, lastHost.name.isHost(of: call) { return lastHost }
        let name = UpstreamHost.Name(
            budget: ObjectIdentifier(call.origin.budget),
            host: call.url.hostText(in: call.request.url),
            port: call.url.port
        )
        let host: UpstreamHost
        if let known = hosts[name] {
            host = known
        } else {
            host = UpstreamHost(name.host, port: name.port, budget: call.origin.budget)
            hosts[name] = host
        }
        lastHost = host
        return host
    }

    // MARK: The permit

    private func takePermit(_ exchange: UpstreamExchange) {
        let budget = exchange.origin.budget
        guard budget.take(exchange.host.place, for: exchange.id, at: mailbox) else {
            exchange.permit = .awaited
            return
        }
        exchange.permit = .held
        findConnection(exchange)
    }

    func granted(_ id: TransferID, by budget: ConnectionBudget, host: Int) {
        // It has ended while it waited.
        guard let exchange = exchange(id) else { return budget.give(host) }
        exchange.permit = .held
        findConnection(exchange)
    }

    // MARK: A kept connection, or a new one

    /// Uses an idle connection if the request can be sent twice, as an idle one may be dead; a probe
    /// sends none, and connects.
    func findConnection(_ exchange: UpstreamExchange) {
        if exchange.call.isSent, exchange.mayBeSentTwice, exchange.sendCount == 0 {
            renewAddresses(exchange.host)
            while let connection = exchange.host.idle.popLast() {
                guard !connection.machine.isClosed else { continue }
                if isSilent(connection) { return begin(exchange, on: connection) }
                close(connection)
            }
        }
        makeRoom(for: exchange)
        if let limit = exchange.origin.configuration.deadlines.connect {
            exchange.connectBy = nanoseconds &+ limit.nanoseconds
        }
        findAddress(exchange)
    }

    /// Looks the name up again in time for a host whose kept connections serve all requests: it may
    /// have moved.
    private func renewAddresses(_ host: UpstreamHost) {
        guard !host.idle.isEmpty, host.beginsRenewal(now: now) else { return }
        host.awaiting = []
        resolve(host.name)
    }

    /// Closes idle connections, the oldest first, until those of this loop to the host are within
    /// the limit with a new one: an origin may serve no more at a time.
    private func makeRoom(for exchange: UpstreamExchange) {
        let host = exchange.host
        let perHostMax = max(1, exchange.origin.configuration.connections.maximumPerHost)
        // Exchanges that wait for a permit are among them; then all permits are in use.
        let inUse = min(host.exchangeCount, perHostMax)
        while host.idle.count > perHostMax - inUse {
            close(host.idle.removeFirst())
        }
    }

    private func findAddress(_ exchange: UpstreamExchange) {
        let host = exchange.host
        if now < host.addressesEnd {
            connectToAddresses(exchange)
        } else if host.awaiting != nil {
            awaitLookUp(exchange)
        } else if let address = SocketAddress.literal(host.name.host, port: host.name.port) {
            host.addresses = [address]
            host.addressesEnd = .max
            connectToAddresses(exchange)
        } else {
            host.awaiting = []
            awaitLookUp(exchange)
            resolve(host.name)
        }
    }

    private func awaitLookUp(_ exchange: UpstreamExchange) {
        exchange.awaitsLookUp = true
        let hasOther = exchange.host.mayUseOldAddresses(now: now)
        exchange.limitAddress(now: nanoseconds, hasOther: hasOther)
        exchange.host.awaiting?.append(exchange.id)
    }

    /// Whether the origin has sent nothing on an idle connection, and not ended it.
    ///
    /// Bytes that came unasked would be read as the response to the next request.
    private func isSilent(_ connection: UpstreamConnection) -> Bool {
        Mutant.trustsIdleConnections.isOn || cp_is_silent(connection.socket) != 0
    }

    /// Looks the name up on a thread of its own, because the system's resolver blocks.
    private func resolve(_ name: UpstreamHost.Name) {
        do {
            try SystemThread.startDetached { [mailbox] in
                let found = SocketAddress.resolve(
                    name.host,
                    port: name.port,
                    flags: AI_ADDRCONFIG
                )
                let result = found.mapError { UpstreamFailure.unresolved(name.host, $0) }
                mailbox.post(.upstream(.resolved(name, result)))
            }
        } catch {
            resolved(name, .failure(LocalLack.ofSocket(code: error.code)))
        }
    }

    func resolved(_ name: UpstreamHost.Name, _ result: Result<[SocketAddress], any Error>) {
        guard let host = hosts[name], let awaiting = host.awaiting.take() else { return }
        let waiting = awaiting.compactMap { exchange($0) }.filter(\.awaitsLookUp)
        switch result {
        case .success(let addresses):
            host.found(addresses, now: now)
            closeIdleElsewhere(host)
        // A name server that fails says nothing about addresses that worked.
        case .failure
        where host.mayUseOldAddresses(now: now) && !Mutant.discardsAddresses.isOn:
            host.keepAddresses(now: now)
        case .failure(let error):
            for exchange in waiting { finish(exchange, .failure(exchange.failure(because: error))) }
            return
        }
        for exchange in waiting { connectToAddresses(exchange) }
    }

    /// Closes the idle connections to addresses that the host has no more.
    private func closeIdleElsewhere(_ host: UpstreamHost) {
        for connection in host.idle where !host.addresses.contains(connection.address) {
            close(connection)
        }
        host.idle.removeAll { $0.machine.isClosed }
    }

    /// Connects to old addresses, because the look-up takes long; so does the next exchange at once.
    func useOldAddresses(_ exchange: UpstreamExchange) {
        exchange.host.keepAddresses(now: now)
        connectToAddresses(exchange)
    }

    private func connectToAddresses(_ exchange: UpstreamExchange) {
        exchange.awaitsLookUp = false
        exchange.addressBy = .max
        exchange.addresses = exchange.host.addresses[...]
        connectToNext(exchange, nil)
    }

    /// Connects to the next address; without one, `failure` ends the exchange, or that of an address
    /// since then.
    private func connectToNext(_ exchange: UpstreamExchange, _ failure: Int32?) {
        var failure = failure
        while let address = exchange.addresses.popFirst() {
            let socket: Int32
            switch openSocket(address.family) {
            case .success(let opened): socket = opened
            case .failure(let error): return finish(exchange, .failure(error))
            }
            let code = address.beginConnection(of: socket)
            guard code == 0 || code == EINPROGRESS else {
                // A refusal by the origin says more of it than a lack of this machine.
                if failure == nil || !UpstreamFailure.isLack(code) { failure = code }
                closeDescriptor(socket)
                continue
            }
            guard let connection = open(socket, to: exchange.host, at: address) else {
                let error = LocalLack.ofSocket(code: errno)
                closeDescriptor(socket)
                return finish(exchange, .failure(error))
            }
            exchange.connection = connection
            connection.exchange = exchange
            exchange.limitAddress(now: nanoseconds, hasOther: !exchange.addresses.isEmpty)
            if code == 0 { connected(connection) }
            return
        }
        let error = UpstreamFailure.unconnected(
            exchange.host.name.description,
            code: failure ?? ECONNREFUSED
        )
        finish(exchange, .failure(exchange.failure(because: error)))
    }

    /// A socket that does not block; an idle connection ends if no other file can be opened.
    private func openSocket(_ family: Int32) -> Result<Int32, LocalLack> {
        var socket = makeSocket(family)
        if socket < 0, errno == EMFILE || errno == ENFILE, !Mutant.closesNoIdle.isOn,
            closeOldestIdle()
        {
            socket = makeSocket(family)
        }
        guard socket >= 0 else { return .failure(LocalLack.ofSocket(code: errno)) }
        switchOn(Int32(IPPROTO_TCP), TCP_NODELAY, of: socket)
        switchOn(SOL_SOCKET, SO_KEEPALIVE, of: socket)
        return .success(socket)
    }

    /// An event came for a connection that was being made.
    func finishConnecting(_ connection: UpstreamConnection) {
        guard connection.isWritable else { return }
        var code: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(connection.socket, SOL_SOCKET, SO_ERROR, &code, &size)
        guard code != 0 else { return connected(connection) }
        giveUp(connection, code)
    }

    /// Goes on with the next address, because `connection` could not be made.
    func giveUp(_ connection: UpstreamConnection, _ code: Int32) {
        let exchange = connection.exchange
        connection.exchange = nil
        close(connection)
        guard let exchange else { return }
        exchange.connection = nil
        connectToNext(exchange, code)
    }

    private func connected(_ connection: UpstreamConnection) {
        connection.machine.connected()
        connection.isWritable = true
        connection.host.prefer(connection.address)
        guard let exchange = connection.exchange else { return close(connection) }
        if !exchange.call.isSent {
            close(connection)
            return finish(exchange, .end)
        }
        begin(exchange, on: connection)
    }

    private func begin(_ exchange: UpstreamExchange, on connection: UpstreamConnection) {
        exchange.connectBy = .max
        exchange.addressBy = .max
        connection.begin(exchange)
        beginSending(connection, exchange)
    }
}
