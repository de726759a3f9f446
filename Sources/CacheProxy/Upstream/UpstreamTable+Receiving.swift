import CacheEngine
import CurlOrigin
import HTTPCaching
import Platform

/// Receiving the responses of origins.
extension UpstreamTable {
    /// The places for pieces of a body that a connection keeps from exchange to exchange.
    private static let piecesKept = 16
    /// The largest body that is delivered with its head if it is there at once.
    private static let wholeBytesMax = 256 * 1024

    /// Reads what the socket has, one buffer in a turn.
    func receive(_ connection: UpstreamConnection) {
        var bytes = 0
        while connection.isReadable, !connection.machine.isClosed, mayRead(connection) {
            guard bytes < Self.readBytes, turnBytes < Self.turnBytesMax else {
                deliverHead(connection)
                return waitForTurn(connection)
            }
            let count = read(connection.socket, scratch.baseAddress, scratch.count)
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN || errno == EWOULDBLOCK {
                connection.isReadable = false
                break
            }
            guard count > 0 else { return inputEnded(connection, isReset: count < 0) }
            // A short read has emptied the socket, but after the last byte comes the end.
            if count < scratch.count, !connection.machine.isEnding { connection.isReadable = false }
            bytes += count
            turnBytes += count
            take(connection, UnsafeRawBufferPointer(rebasing: scratch[..<count]))
        }
        if !connection.machine.isClosed { deliverHead(connection) }
    }

    /// Whether the reader has room; the head waits for no reader.
    private func mayRead(_ connection: UpstreamConnection) -> Bool {
        guard connection.machine.phase == .receiving, connection.arrived == nil else { return true }
        guard !connection.isHeld else { return false }
        switch connection.exchange?.exchange.admit() {
        case .accepted: return true
        case .held:
            connection.isHeld = true
            connection.exchange?.deadlines.readerHolds()
            return false
        case .refused, nil: return false
        }
    }

    private func take(_ connection: UpstreamConnection, _ bytes: UnsafeRawBufferPointer) {
        switch connection.machine.phase {
        case .awaiting:
            connection.machine.received()
            takeHead(connection, bytes)
        case .receiving:
            connection.exchange?.deadlines.progressed(now: nanoseconds)
            takeBody(connection, bytes, from: 0)
        // Bytes that no request asked for.
        case .idle: closeIdle(connection)
        case .connecting, .closed: break
        }
    }

    // MARK: The head

    private func takeHead(_ connection: UpstreamConnection, _ bytes: UnsafeRawBufferPointer) {
        guard !connection.head.isEmpty else {
            if let rest = parseHead(connection, bytes) {
                connection.head = [UInt8](UnsafeRawBufferPointer(rebasing: bytes[rest...]))
            }
            return
        }
        // Taken out, so that no byte of a head that comes in small pieces is copied for each one.
        var whole: [UInt8] = []
        swap(&whole, &connection.head)
        whole.append(contentsOf: bytes)
        guard let rest = whole.withUnsafeBytes({ parseHead(connection, $0) }) else { return }
        if rest > 0 { whole.removeFirst(rest) }
        connection.head = whole
    }

    /// Parses the heads in `bytes`, and takes the body after the last one; returns the start of
    /// an incomplete head.
    private func parseHead(
        _ connection: UpstreamConnection,
        _ bytes: UnsafeRawBufferPointer
    ) -> Int? {
        guard let exchange = connection.exchange else {
            close(connection)
            return nil
        }
        var offset = 0
        while true {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
            switch connection.parser.parse(Span(_unsafeBytes: rest), exchange.origin.limits) {
            case .needsMore: return offset
            case .interim(let end):
                let head = connection.parser.takeHead()
                exchange.exchange.deliver(
                    .informational(
                        ResponseHead(
                            status: head.status,
                            fields: HeaderFields(head.section),
                            hasContent: false
                        )
                    )
                )
                offset += end
            case .refused(let fault):
                cut(exchange, UpstreamFailure.misbehaved(fault))
                return nil
            case .complete(let end):
                beginBody(connection, exchange)
                takeBody(connection, bytes, from: offset + end)
                return nil
            }
        }
    }

    private func beginBody(_ connection: UpstreamConnection, _ exchange: UpstreamExchange) {
        let head = connection.parser.takeHead()
        connection.machine.headCame(mayPersist: head.mayPersist && !isOfOneUser(exchange))
        connection.decoder = BodyDecoder(
            head.framing,
            of: .response(trailerBytesMax: exchange.origin.limits.trailerBytesMax)
        )
        exchange.deadlines.headArrived(now: nanoseconds)
        connection.arrived = head
    }

    /// Whether the origin may take later requests on the connection for those of this client.
    private func isOfOneUser(_ exchange: UpstreamExchange) -> Bool {
        exchange.call.request.fields.section.authenticatesConnection
            && !Mutant.sharesAuthenticatedConnections.isOn
    }

    /// Delivers the head that arrived, with the body as far as it is there.
    private func deliverHead(_ connection: UpstreamConnection, whole: Bool = false) {
        guard let head = connection.arrived.take(), let exchange = connection.exchange else {
            return
        }
        var contentBytes: Int?
        if case .length(let count) = head.framing { contentBytes = count }
        exchange.exchange.deliver(
            .head(
                ResponseHead(
                    status: head.status,
                    fields: HeaderFields(head.section),
                    contentBytes: contentBytes,
                    hasContent: head.framing != .none,
                    content: whole ? ByteChunk(joining: connection.pieces) : nil
                )
            )
        )
        if !whole { for piece in connection.pieces { exchange.exchange.deliver(.chunk(piece)) } }
        connection.pieces.removeAll(keepingCapacity: connection.pieces.capacity <= Self.piecesKept)
        connection.piecesBytes = 0
    }

    // MARK: The body

    private func takeBody(
        _ connection: UpstreamConnection,
        _ bytes: UnsafeRawBufferPointer,
        from start: Int
    ) {
        var offset = start
        // Only an origin's smallest chunks come several to a read.
        var content = 0..<0
        var joined: [UInt8] = []
        while true {
            let span = Span<UInt8>(_unsafeBytes: bytes)
            guard let step = connection.decoder?.decode(span, from: offset) else { return }
            if case .data(let range) = step {
                if !content.isEmpty { joined.append(contentsOf: bytes[content]) }
                content = range
                offset = range.upperBound
                continue
            }
            takeContent(connection, UnsafeRawBufferPointer(rebasing: bytes[content]), after: joined)
            switch step {
            case .data, .needsMore: return
            case .end(let end): return endBody(connection, isInputLeft: end < bytes.count)
            case .refused:
                deliverHead(connection)
                if let exchange = connection.exchange {
                    cut(exchange, UpstreamFailure.misbehaved(.malformedChunk))
                }
                return
            }
        }
    }

    /// Takes the content of one read as one piece: a piece for each chunk would let an origin that
    /// sends single bytes cost a message for each of them.
    private func takeContent(
        _ connection: UpstreamConnection,
        _ content: UnsafeRawBufferPointer,
        after joined: [UInt8]
    ) {
        guard !content.isEmpty else { return }
        if joined.isEmpty { return takePiece(connection, ByteChunk(copying: content)) }
        takePiece(connection, ByteChunk(joined + content))
    }

    private func takePiece(_ connection: UpstreamConnection, _ chunk: ByteChunk) {
        guard let exchange = connection.exchange else { return }
        guard connection.arrived != nil else { return exchange.exchange.deliver(.chunk(chunk)) }
        connection.pieces.append(chunk)
        connection.piecesBytes += chunk.count + ByteChunk.overheadBytes
        let windowBytesMax = exchange.origin.configuration.limits.windowBytesMax
        if connection.piecesBytes > min(Self.wholeBytesMax, windowBytesMax) {
            deliverHead(connection)
        }
    }

    private func endBody(_ connection: UpstreamConnection, isInputLeft: Bool) {
        guard let exchange = connection.exchange else { return close(connection) }
        deliverHead(connection, whole: true)
        connection.decoder = nil
        switch connection.machine.bodyEnded(isInputLeft: isInputLeft) {
        case .keep:
            finish(exchange, .end)
            keep(connection, exchange.origin)
        case .close:
            close(connection)
            finish(exchange, .end)
        }
    }

    /// Keeps a connection for the next exchange, unless its host has moved to other addresses; those
    /// unused for longest make room.
    ///
    /// The limit is that of the loop: connections to a host that a new configuration has dropped
    /// count too.
    private func keep(_ connection: UpstreamConnection, _ origin: PlainOrigin) {
        guard connection.host.addresses.contains(connection.address) else {
            return close(connection)
        }
        connection.idleEnd = now + Self.idleMilliseconds
        connection.host.idle.append(connection)
        let idleMax = max(0, origin.configuration.connections.maximumIdle)
        guard connections.count > idleMax else { return }
        var idleCount = hosts.values.reduce(0) { $0 + $1.idle.count }
        while idleCount > idleMax, closeOldestIdle() { idleCount -= 1 }
    }

    /// Closes the connection that no exchange has used for longest; returns `false` if there is no
    /// idle one.
    func closeOldestIdle() -> Bool {
        var oldest: UpstreamHost?
        for host in hosts.values {
            guard let first = host.idle.first else { continue }
            if first.idleEnd < oldest?.idle.first?.idleEnd ?? .max { oldest = host }
        }
        guard let oldest else { return false }
        close(oldest.idle.removeFirst())
        return true
    }

    private func closeIdle(_ connection: UpstreamConnection) {
        connection.host.idle.removeAll { $0 === connection }
        close(connection)
    }

    // MARK: The end of the connection

    private func inputEnded(_ connection: UpstreamConnection, isReset: Bool) {
        let exchange = connection.exchange
        let isReset = (isReset || connection.isBroken) && !Mutant.takesResetForEnd.isOn
        // A reset is no end of a body.
        let isBodyOver = !isReset && connection.decoder?.connectionEnded() ?? false
        deliverHead(connection, whole: isBodyOver)
        let loss = connection.machine.lost()
        connection.host.idle.removeAll { $0 === connection }
        close(connection)
        guard let exchange else { return }
        switch loss {
        case .nothing: break
        case .unreached: cut(exchange, UpstreamFailure.closedUnanswered)
        case .unansweredOnKept
        where exchange.isIdempotent && exchange.sendCount < 2
            && exchange.upload?.rewind() ?? true:
            exchange.connection = nil
            findConnection(exchange)
        case .unansweredOnKept, .unanswered: cut(exchange, UpstreamFailure.closedUnanswered)
        case .withinHead: cut(exchange, UpstreamFailure.closedInHead)
        case .withinBody where isBodyOver: finish(exchange, .end)
        case .withinBody: cut(exchange, UpstreamFailure.truncated)
        }
    }
}
