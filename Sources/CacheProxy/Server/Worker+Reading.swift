import CacheEngine

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// From a socket's bytes to requests.
extension Worker {
    /// Rounds of reading and answering before the other connections have their turn.
    private static let roundsMax = 16

    /// Does everything that can be done for a connection now, within its turn.
    func advance(_ connection: Connection) {
        var isMoving = true
        var rounds = 0
        while isMoving {
            guard rounds < Self.roundsMax else { return waitForTurn(connection) }
            rounds += 1
            usePending(connection)
            readSocket(connection)
            let isHeldBack = !mayUseInput(connection)
            flush(connection)
            // What went out may have made room for what waits.
            isMoving = isHeldBack && mayUseInput(connection)
        }
        if !connection.isClosed { settle(connection) }
    }

    private func waitForTurn(_ connection: Connection) {
        guard !connection.waitsForTurn else { return }
        connection.waitsForTurn = true
        waitingForTurn.append(connection.id)
    }

    private func mayUseInput(_ connection: Connection) -> Bool {
        if connection.isClosed { return false }
        if connection.isLingering {
            return connection.discardedBytes <= configuration.discardedBytesMax
        }
        if connection.content != nil { return !connection.isContentPaused }
        return connection.exchange == nil && !connection.closesBehindAnswer
            && connection.queue.bytes + batchBytes < configuration.queuedBytesMax
            && batch.count < Self.piecesMax - 2
    }

    private func readSocket(_ connection: Connection) {
        while connection.isReadable, mayUseInput(connection) {
            let count = read(connection.socket, scratch.baseAddress, scratch.count)
            if count < 0 {
                if errno == EINTR { continue }
                connection.isReadable = false
                if errno != EAGAIN && errno != EWOULDBLOCK { close(connection) }
                return
            }
            if count == 0 {
                connection.isReadable = false
                return endInput(connection)
            }
            // A shorter read has emptied the socket; the next bytes, or their end, are a new edge.
            if count < scratch.count, !connection.isEndReported { connection.isReadable = false }
            take(connection, UnsafeRawBufferPointer(rebasing: scratch[..<count]))
        }
    }

    /// The client will send no more; it may still wait for answers.
    private func endInput(_ connection: Connection) {
        connection.hasEnded = true
        guard connection.isLingering || connection.content != nil && connection.exchange != nil
        else { return }
        // An answer that is whole still has to go out.
        flush(connection)
        close(connection)
    }

    private func take(_ connection: Connection, _ bytes: UnsafeRawBufferPointer) {
        if connection.isLingering { return discard(connection, bytes.count) }
        if let pending = connection.pending {
            pending.bytes.append(contentsOf: bytes)
            return usePending(connection)
        }
        let used = use(connection, bytes)
        guard used < bytes.count, !connection.isClosed, !connection.isLingering,
            !connection.closesBehindAnswer || connection.content != nil
        else { return }
        if connection.exchange == nil && connection.content == nil {
            // A head has begun, and its time is running.
            setDeadline(connection, after: configuration.timeouts.headMilliseconds)
        }
        let rest = UnsafeRawBufferPointer(rebasing: bytes[used...])
        connection.pending = PendingInput(bytes: [UInt8](rest), parser: parser)
        parser = RequestParser()
    }

    /// Goes on with bytes that could not be used when they came.
    private func usePending(_ connection: Connection) {
        guard let pending = connection.pending, mayUseInput(connection) else { return }
        swap(&parser, &pending.parser)
        let wasWaiting = pending.bytes
        let used = wasWaiting.withUnsafeBytes { use(connection, $0) }
        guard used > 0 else { return swap(&parser, &pending.parser) }
        if used == pending.bytes.count || connection.closesBehindAnswer && connection.content == nil
        {
            connection.pending = nil
            parser.reset()
        } else {
            pending.bytes.removeFirst(used)
            swap(&parser, &pending.parser)
            if connection.exchange == nil && connection.content == nil {
                setDeadline(connection, after: configuration.timeouts.headMilliseconds)
            }
        }
    }

    /// Uses bytes as far as they go; how many were used.
    ///
    /// The parser is left with what it knows of the head that the unused ones begin.
    private func use(_ connection: Connection, _ bytes: UnsafeRawBufferPointer) -> Int {
        var offset = 0
        while !connection.isClosed {
            if connection.content != nil {
                guard useContent(connection, bytes, &offset) else { return offset }
                continue
            }
            guard offset < bytes.count, mayUseInput(connection), !connection.isLingering else {
                break
            }
            let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
            switch parser.parse(rest, configuration.wire) {
            case .needsMore: return offset
            case .complete(let count):
                take(connection, request: parser.head, in: rest)
                offset += count
                parser.reset()
            case .refused(let fault):
                parser.reset()
                refuse(connection, fault)
                return bytes.count
            }
        }
        return connection.isClosed || connection.isLingering ? bytes.count : offset
    }

    /// Uses bytes as content; false when no more of them can be used now.
    private func useContent(
        _ connection: Connection,
        _ bytes: UnsafeRawBufferPointer,
        _ offset: inout Int
    ) -> Bool {
        // The last bytes may have filled the window: no later ones will bring the end.
        guard let content = connection.content, !connection.isContentPaused || content.isAtEnd,
            let step = connection.content?.decode(bytes, from: offset, configuration.wire)
        else { return false }
        switch step {
        case .data(let range):
            offset = range.upperBound
            takeContent(connection, UnsafeRawBufferPointer(rebasing: bytes[range]))
            return !connection.isClosed
        case .needsMore:
            offset = bytes.count
            return false
        case .end(let end):
            offset = end
            connection.content = nil
            connection.isContentPaused = false
            connection.sink?.finish()
            connection.sink = nil
            if connection.exchange != nil { removeDeadline(connection) }
            return true
        case .refused(let fault):
            offset = bytes.count
            failContent(connection, fault)
            return false
        }
    }

    private func takeContent(_ connection: Connection, _ bytes: UnsafeRawBufferPointer) {
        guard let sink = connection.sink else { return discard(connection, bytes.count) }
        setDeadline(connection, after: configuration.timeouts.contentMilliseconds)
        switch sink.push(ByteChunk(copying: bytes)) {
        case .goOn: break
        case .pause:
            connection.isContentPaused = true
            removeDeadline(connection)
        case .discard:
            connection.sink = nil
            discard(connection, bytes.count)
        }
    }

    /// Bytes nobody wants: a few are read to save the connection, or to let the answer arrive.
    private func discard(_ connection: Connection, _ count: Int) {
        connection.discardedBytes += count
        guard connection.discardedBytes > configuration.discardedBytesMax else { return }
        connection.closesBehindAnswer = true
        connection.isContentPaused = true
    }

    private func failContent(_ connection: Connection, _ fault: RequestFault) {
        connection.content = nil
        connection.sink?.fail()
        connection.sink = nil
        guard !connection.answer.hasBegun, connection.exchange != nil else {
            connection.closesBehindAnswer = true
            connection.mustLinger = true
            return
        }
        connection.exchange?.cancel()
        connection.exchange = nil
        refuse(connection, fault)
    }

    func resumeContent(_ connection: Connection) {
        guard connection.content != nil else { return }
        if connection.answer.expectsContinue, !connection.answer.hasBegun {
            connection.answer.expectsContinue = false
            let start = out.count
            out.append("HTTP/1.1 100 Continue\r\n\r\n")
            emitHead(connection, from: start)
        }
        connection.isContentPaused = false
        setDeadline(connection, after: configuration.timeouts.contentMilliseconds)
    }
}
