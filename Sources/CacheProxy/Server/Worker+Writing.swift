import CProxyShims
import CacheEngine

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Something to write: bytes in the worker's buffer, or a piece of a body.
enum OutputPiece {
    case head(Range<Int>)
    case body(ByteChunk)
}

/// From answers to a socket's bytes.
///
/// What one event produces is gathered in `batch`, heads in the buffer `out` and bodies where the
/// cache has them, and leaves with one call. Only what the socket does not take is kept with the
/// connection.
extension Worker {
    /// The bytes of `out` from `start` on are the connection's next.
    func emitHead(_ connection: Connection, from start: Int) {
        batchBytes += out.count - start
        if case .head(let last)? = batch.last, last.upperBound == start {
            batch[batch.count - 1] = .head(last.lowerBound..<out.count)
        } else {
            batch.append(.head(start..<out.count))
        }
    }

    func emit(_ connection: Connection, _ chunk: ByteChunk) {
        guard !chunk.isEmpty else { return }
        batchBytes += chunk.count
        batch.append(.body(chunk))
    }

    /// Writes what there is, as far as the socket takes it.
    func flush(_ connection: Connection) {
        defer {
            if !batch.isEmpty { batch.removeAll(keepingCapacity: true) }
            batchBytes = 0
            out.removeAll()
        }
        guard !connection.isClosed else { return }
        if !batch.isEmpty {
            if connection.queue.isEmpty, connection.isWritable, batch.count <= Self.piecesMax {
                guard writeBatch(connection) else { return close(connection) }
            } else {
                queueBatch(connection, from: 0)
            }
        }
        while !connection.queue.isEmpty, connection.isWritable {
            guard writeQueue(connection) else { return close(connection) }
        }
        acknowledge(connection)
    }

    /// False when the connection is broken.
    private func writeBatch(_ connection: Connection) -> Bool {
        var count = 0
        for piece in batch {
            // The addresses hold for the call below: `out` does not change before it, and `batch`
            // keeps the bodies.
            switch piece {
            case .head(let range):
                let part = UnsafeRawBufferPointer(rebasing: out.bytes[range])
                vectors[count] = Self.vector(part)
            case .body(let chunk):
                vectors[count] = chunk.withUnsafeBytes(Self.vector)
            }
            count += 1
        }
        let sent = send(connection, count)
        guard sent >= 0 else { return false }
        counters.add(sent, to: .bytesOut)
        if sent < batchBytes {
            connection.isWritable = false
            queueBatch(connection, from: sent)
        }
        return true
    }

    private func writeQueue(_ connection: Connection) -> Bool {
        var count = 0
        var bytes = 0
        connection.queue.forEach(max: Self.piecesMax) { chunk in
            // The queue keeps the bytes of every piece until after the call.
            vectors[count] = chunk.withUnsafeBytes(Self.vector)
            count += 1
            bytes += chunk.count
        }
        let sent = send(connection, count)
        guard sent >= 0 else { return false }
        counters.add(sent, to: .bytesOut)
        if sent > 0 { setDeadline(connection, after: configuration.timeouts.writeMilliseconds) }
        connection.queue.drop(sent)
        if sent < bytes { connection.isWritable = false }
        if connection.queue.isEmpty, connection.exchange != nil, connection.content == nil {
            // The client is up to date; what takes time now is not its fault.
            removeDeadline(connection)
        }
        return true
    }

    /// How many bytes were taken; -1 when the connection is broken.
    private func send(_ connection: Connection, _ count: Int) -> Int {
        var message = msghdr()
        message.msg_iov = vectors
        message.msg_iovlen = .init(count)
        while true {
            let sent = sendmsg(connection.socket, &message, cp_send_flags())
            if sent >= 0 { return sent }
            if errno == EAGAIN || errno == EWOULDBLOCK { return 0 }
            if errno != EINTR { return -1 }
        }
    }

    /// Keeps what is left of the batch; heads are copied, bodies shared.
    private func queueBatch(_ connection: Connection, from sent: Int) {
        if connection.queue.isEmpty {
            setDeadline(connection, after: configuration.timeouts.writeMilliseconds)
        }
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
    }

    private func acknowledge(_ connection: Connection) {
        guard connection.unacknowledgedBytes > 0,
            connection.queue.bytes <= configuration.queuedBytesMax / 2
        else { return }
        connection.exchange?.acknowledge(connection.unacknowledgedBytes)
        connection.unacknowledgedBytes = 0
    }

    private static func vector(_ bytes: UnsafeRawBufferPointer) -> iovec {
        iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
    }

    /// What follows when nothing more can be done for now: waiting with a limit, or the end.
    func settle(_ connection: Connection) {
        guard connection.queue.isEmpty else {
            return ensureDeadline(connection, after: configuration.timeouts.writeMilliseconds)
        }
        guard connection.exchange == nil else { return }
        if connection.closesBehindAnswer { return finish(connection) }
        // What is left is no whole request, and never will be.
        if connection.hasEnded { return close(connection) }
        guard connection.content == nil else { return }
        guard connection.pending == nil else {
            return ensureDeadline(connection, after: configuration.timeouts.headMilliseconds)
        }
        if isDraining { return close(connection) }
        if connection.answer.hasBegun {
            setDeadline(connection, after: configuration.timeouts.idleMilliseconds)
        }
    }

    /// Everything is written.
    ///
    /// Bytes nobody has read would turn the close into a reset and could take the answer with them,
    /// so they are waited for a little (RFC 9112 §9.6).
    private func finish(_ connection: Connection) {
        if connection.isLingering { return }
        let mayHaveMore =
            connection.mustLinger || connection.content != nil
            || connection.isReadable || connection.pending != nil
        guard mayHaveMore, !connection.hasEnded else { return close(connection) }
        shutdown(connection.socket, Int32(SHUT_WR))
        connection.isLingering = true
        connection.content = nil
        connection.pending = nil
        connection.isContentPaused = false
        connection.discardedBytes = 0
        setDeadline(connection, after: configuration.timeouts.lingerMilliseconds)
        advance(connection)
    }
}
