import CProxyShims
import CacheEngine
import CurlOrigin
import Platform

/// Sending requests to origins.
extension UpstreamTable {
    /// Bytes of content taken from its source at once.
    private static let contentBytes = 64 * 1024

    /// Sends the head, and as much of the content as there is.
    func beginSending(_ connection: UpstreamConnection, _ exchange: UpstreamExchange) {
        exchange.sendCount += 1
        out.removeAll()
        do throws(CacheError) {
            let content = try RequestHeadWriter.write(exchange.call, to: out)
            connection.sendsChunks = content == .chunked
        } catch {
            return cut(exchange, error)
        }
        let hasContent = exchange.upload.map { $0.count != 0 } ?? false
        exchange.deadlines.sent(hasContent: hasContent, now: nanoseconds)
        if exchange.upload == nil {
            connection.hasQueuedAll = true
        } else {
            appendContent(connection, exchange)
        }
        guard !connection.machine.isClosed else { return }
        turnBytes += flush(connection)
        noteSent(connection, exchange)
        move(connection)
    }

    /// Sends what waits, and more content after it, within the connection's turn.
    func sendRequest(_ connection: UpstreamConnection) {
        while connection.isWritable, connection.machine.isBusy, !connection.machine.hasSentAll {
            guard let exchange = connection.exchange else { return }
            guard turnBytes < Self.turnBytesMax else { return waitForTurn(connection) }
            if connection.queue.isEmpty {
                out.removeAll()
                appendContent(connection, exchange)
                if connection.machine.isClosed || out.count == 0 { return }
                turnBytes += flush(connection)
            } else {
                turnBytes += writeQueue(connection, exchange)
            }
            noteSent(connection, exchange)
        }
    }

    /// The request counts as sent when the socket has taken its last byte.
    private func noteSent(_ connection: UpstreamConnection, _ exchange: UpstreamExchange) {
        let isTaken = connection.queue.isEmpty || Mutant.countsQueuedAsSent.isOn
        guard connection.hasQueuedAll, isTaken else { return }
        connection.machine.sentAll()
        if exchange.upload != nil { connection.progress.begin(connection.socket) }
        exchange.deadlines.contentEnded(now: nanoseconds)
    }

    /// Lets the limit that runs begin anew if the origin has taken content that the system held.
    func noteTakenContent(_ exchange: UpstreamExchange) {
        guard let upload = exchange.upload, let connection = exchange.connection,
            connection.progress.holdsBytes, !upload.isSourceSilent,
            connection.progress.hasAdvanced(connection.socket),
            !Mutant.blamesOriginsThatReadSlowly.isOn
        else { return }
        exchange.deadlines.originTookContent(now: nanoseconds)
        exchange.call.request.body?.noteMovement()
    }

    /// Appends the next content to `out`, framed.
    private func appendContent(_ connection: UpstreamConnection, _ exchange: UpstreamExchange) {
        guard let upload = exchange.upload else { return }
        // The size line comes before its bytes: room is left for it, eight digits and a line end.
        let sizeBytes = connection.sendsChunks ? 10 : 0
        let start = out.count
        let room = UnsafeMutableRawBufferPointer(
            start: out.room(for: sizeBytes + Self.contentBytes) + sizeBytes,
            count: Self.contentBytes
        )
        switch upload.fill(room) {
        case .bytes(let count):
            if connection.sendsChunks {
                appendSize(count)
                out.advance(by: count)
                out.append("\r\n")
            } else {
                out.advance(by: count)
            }
            exchange.contentMoved(now: nanoseconds)
            if upload.isDrained, !connection.sendsChunks { connection.hasQueuedAll = true }
        case .end:
            if connection.sendsChunks { out.append("0\r\n\r\n") }
            connection.hasQueuedAll = true
        case .held: out.truncate(to: start)
        case .broken:
            let error =
                upload.failure
                ?? CacheError(
                    .requestInvalid,
                    detail: "The request's content broke off"
                )
            cut(exchange, error)
        }
    }

    /// The size of a chunk in eight digits and its line end (RFC 9112 §7.1 allows leading zeros).
    private func appendSize(_ count: Int) {
        for shift in stride(from: 28, through: 0, by: -4) {
            let digit = UInt8(truncatingIfNeeded: count >> shift & 0xF)
            out.append(byte: digit < 10 ? 0x30 + digit : 0x61 + digit - 10)
        }
        out.append("\r\n")
    }

    /// Writes `out` and queues what the socket does not take; returns the number of bytes written.
    private func flush(_ connection: UpstreamConnection) -> Int {
        guard out.count > 0 else { return 0 }
        var sent = 0
        if connection.isWritable, connection.queue.isEmpty {
            sent = put(connection, out.bytes)
        }
        if sent < out.count {
            let rest = UnsafeRawBufferPointer(rebasing: out.bytes[sent...])
            connection.queue.append(ByteChunk(copying: rest))
        }
        out.removeAll()
        return sent
    }

    private func writeQueue(
        _ connection: UpstreamConnection,
        _ exchange: UpstreamExchange
    ) -> Int {
        var sent = 0
        connection.queue.forEach(max: 1) { piece in
            sent = piece.withUnsafeBytes { put(connection, $0) }
        }
        connection.queue.drop(sent)
        if sent > 0 { exchange.contentMoved(now: nanoseconds) }
        return sent
    }

    /// Returns the number of bytes that the socket took.
    ///
    /// A socket that takes no more, because the origin closed it, may still hold a response; what
    /// reading finds decides. Only EPIPE means that the origin ended its response in an orderly way.
    private func put(_ connection: UpstreamConnection, _ bytes: UnsafeRawBufferPointer) -> Int {
        while true {
            let sent = send(connection.socket, bytes.baseAddress, bytes.count, sendsNoSignal)
            if sent >= 0 {
                if sent < bytes.count { block(connection) }
                return sent
            }
            if errno == EINTR { continue }
            let code = errno
            block(connection)
            if code != EAGAIN, code != EWOULDBLOCK {
                if code != EPIPE { connection.isBroken = true }
                connection.isReadable = true
                connection.machine.inputEnds()
            }
            return 0
        }
    }

    /// The socket takes no more: from now on the origin must take what the system holds for it.
    private func block(_ connection: UpstreamConnection) {
        connection.isWritable = false
        connection.progress.begin(connection.socket)
    }
}
