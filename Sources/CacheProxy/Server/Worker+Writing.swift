import CacheEngine
import Platform

/// Something to write: bytes in the worker's buffer, or a piece of a body.
enum OutputPiece {
    case head(Range<Int>)
    case body(ByteChunk)
}

/// Writing responses to sockets.
///
/// `batch` gathers the output of one event, heads in the buffer `out` and bodies in the cache's
/// memory, and one call sends it. The connection keeps only the bytes that the socket does not
/// take.
extension Worker {
    /// Appends the bytes of `out` from `start` on to the output.
    func emitHead(from start: Int) {
        batchBytes += out.count - start
        if case .head(let last)? = batch.last, last.upperBound == start {
            batch[batch.count - 1] = .head(last.lowerBound..<out.count)
        } else {
            batch.append(.head(start..<out.count))
        }
    }

    /// Appends a piece of a body to the output; a small one is copied after its head.
    func emit(_ chunk: ByteChunk) {
        guard !chunk.isEmpty else { return }
        if chunk.count <= Self.copiedBytesMax {
            let start = out.count
            chunk.withUnsafeBytes { out.append($0) }
            return emitHead(from: start)
        }
        batchBytes += chunk.count
        batch.append(.body(chunk))
    }

    /// Writes as much output as the socket takes and this turn allows.
    func flush(_ connection: Connection) {
        defer {
            if !batch.isEmpty { batch.removeAll(keepingCapacity: true) }
            batchBytes = 0
            out.removeAll()
        }
        guard !connection.machine.isClosed else { return }
        if !batch.isEmpty {
            let bytesMax = turnBytes < Self.turnBytesMax ? Self.sendBytesMax : Self.smallBytesMax
            if connection.queue.isEmpty, connection.machine.isWritable,
                batch.count <= Self.piecesMax,
                batchBytes <= bytesMax
            {
                guard writeBatch(connection) else { return close(connection) }
            } else {
                queueBatch(connection, from: 0)
            }
        }
        if !connection.queue.isEmpty {
            guard writeInTurn(connection) else { return close(connection) }
        }
        acknowledge(connection)
    }

    /// Returns `false` if the connection is broken.
    private func writeInTurn(_ connection: Connection) -> Bool {
        if connection.machine.isWritable, turnBytes < Self.turnBytesMax {
            guard writeQueue(connection) else { return false }
        }
        if connection.queue.isEmpty { return true }
        if connection.machine.isWritable {
            waitForTurn(connection)
        } else {
            connection.queue.waitForSocket(bytesMax: configuration.queuedBytesMax)
        }
        return true
    }

    /// Writes as much as the socket takes, for a connection that gets no other turn.
    func flushLast(_ connection: Connection) {
        flush(connection)
        while !connection.machine.isClosed, !connection.queue.isEmpty,
            connection.machine.isWritable
        {
            guard writeQueue(connection) else { return close(connection) }
        }
    }

    /// Returns `false` if the connection is broken.
    private func writeBatch(_ connection: Connection) -> Bool {
        var count = 0
        for piece in batch {
            // The addresses are valid for the call below: `out` does not change before it, and
            // `batch` keeps the bodies.
            switch piece {
            case .head(let range):
                let part = UnsafeRawBufferPointer(rebasing: out.bytes[range])
                vectors[count] = Self.vector(part)
            case .body(let chunk):
                vectors[count] = chunk.withUnsafeBytes(Self.vector)
            }
            count += 1
        }
        let sent = put(connection, pieces: count)
        guard sent >= 0 else { return false }
        counters.add(sent, to: .bytesOut)
        if sent < batchBytes {
            blockOutput(connection)
            queueBatch(connection, from: sent)
        }
        return true
    }

    private func writeQueue(_ connection: Connection) -> Bool {
        var count = 0
        var bytes = 0
        connection.queue.forEach(max: Self.piecesMax) { chunk in
            guard bytes < Self.sendBytesMax else { return }
            let part = chunk[0..<min(chunk.count, Self.sendBytesMax - bytes)]
            // The queue keeps the bytes of every piece until after the call.
            vectors[count] = part.withUnsafeBytes(Self.vector)
            count += 1
            bytes += part.count
        }
        let sent = put(connection, pieces: count)
        guard sent >= 0 else { return false }
        counters.add(sent, to: .bytesOut)
        connection.queue.drop(sent)
        if sent > 0 {
            let hasMore = !connection.queue.isEmpty
            if !hasMore { connection.answeredAt = now }
            change(connection, connection.machine.outputSent(hasMore: hasMore))
        }
        if sent < bytes { blockOutput(connection) }
        return true
    }

    /// The socket takes no more: from now on the client must take what the system holds for it.
    private func blockOutput(_ connection: Connection) {
        connection.machine.outputBlocked()
        connection.progress.begin(connection.socket)
    }

    /// Returns the number of bytes taken, or -1 if the connection is broken.
    private func put(_ connection: Connection, pieces count: Int) -> Int {
        var message = msghdr()
        message.msg_iov = vectors
        message.msg_iovlen = .init(count)
        while true {
            let sent =
                count == 1
                ? send(
                    connection.socket,
                    vectors[0].iov_base,
                    vectors[0].iov_len,
                    sendsNoSignal
                ) : sendmsg(connection.socket, &message, sendsNoSignal)
            if sent >= 0 {
                turnBytes += sent
                return sent
            }
            if errno == EAGAIN || errno == EWOULDBLOCK { return 0 }
            if errno != EINTR { return -1 }
        }
    }

    /// Queues the rest of the batch; heads are copied, bodies shared.
    private func queueBatch(_ connection: Connection, from sent: Int) {
        var skipped = sent
        for piece in batch {
            let chunk: ByteChunk
            switch piece {
            case .head(let range):
                chunk = ByteChunk(copying: UnsafeRawBufferPointer(rebasing: out.bytes[range]))
            case .body(let body): chunk = body
            }
            if skipped >= chunk.count {
                skipped -= chunk.count
            } else {
                connection.queue.append(chunk[skipped..<chunk.count])
                skipped = 0
            }
        }
        if !connection.queue.isEmpty { change(connection, connection.machine.outputQueued()) }
    }

    private func acknowledge(_ connection: Connection) {
        guard connection.unacknowledgedBytes > 0,
            connection.queue.cost <= configuration.queuedBytesMax / 2
        else { return }
        connection.pendingResponse?.acknowledge(connection.unacknowledgedBytes)
        connection.unacknowledgedBytes = 0
    }

    private static func vector(_ bytes: UnsafeRawBufferPointer) -> iovec {
        iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
    }

    /// Waits with a limit, or ends the connection: no work is left for now.
    func settle(_ connection: Connection) {
        switch connection.machine.settled(endsIdle: now >= idleEnds) {
        case .wait(let deadline): change(connection, deadline)
        case .close: close(connection)
        case .linger(let deadline):
            shutdown(connection.socket, Int32(SHUT_WR))
            connection.content = nil
            connection.pending = nil
            change(connection, deadline)
            advance(connection)
        }
    }
}
