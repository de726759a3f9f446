import CacheEngine
import Platform

/// Reading requests from sockets.
extension Worker {
    /// Rounds of reading and answering before other connections get their turn.
    private static let roundsMax = 16

    /// Does all work that a connection allows now, within its turn.
    func advance(_ connection: Connection) {
        var isMoving = true
        var rounds = 0
        requestsInARow = 0
        isOutOfTime = false
        while isMoving {
            guard rounds < Self.roundsMax else { return waitForTurn(connection) }
            rounds += 1
            usePending(connection)
            readSocket(connection)
            let isHeldBack = !mayUseInput(connection)
            flush(connection)
            // The bytes that were sent may have made room for the held ones.
            isMoving = isHeldBack && mayUseInput(connection)
        }
        guard !connection.machine.isClosed else { return }
        if isOutOfTime { waitForTurn(connection) } else { settle(connection) }
    }

    func waitForTurn(_ connection: Connection) {
        if connection.machine.waitForTurn() { waitingForTurn.append(connection.id) }
    }

    /// A client that reads nothing holds the bytes of its responses, so few are made in advance.
    private func mayUseInput(_ connection: Connection) -> Bool {
        let isUnlimited = Mutant.answersWhoDoesNotRead.isOn
        let bytesMax = min(
            configuration.queuedBytesMax,
            isUnlimited ? .max : Self.smallBytesMax
        )
        let hasRoom =
            connection.queue.bytes + batchBytes < bytesMax
            && batch.count < Self.piecesMax - 2 && !isOutOfTime
        return connection.machine.usesInput(hasRoom: hasRoom)
    }

    /// Whether this turn has time for a request that came with others.
    ///
    /// The first one of a connection is always answered. One that brings few bytes and asks for few
    /// may cost a millisecond, if its body is read, checked and decompressed for a condition.
    private func hasTimeForMore() -> Bool {
        guard requestsInARow > 0, !Mutant.answersPastItsTurn.isOn else { return true }
        isOutOfTime = !hasTurnTime()
        return !isOutOfTime
    }

    /// Reads what the socket has, one buffer in a turn: the heads in it may cost 0.6 ms of a core.
    private func readSocket(_ connection: Connection) {
        var bytes = 0
        while connection.machine.isReadable, mayUseInput(connection) {
            guard bytes < Self.readBytes || Mutant.readsPastItsTurn.isOn else {
                return waitForTurn(connection)
            }
            let count = read(connection.socket, scratch.baseAddress, scratch.count)
            if count < 0 {
                if errno == EINTR { continue }
                let isEmpty = errno == EAGAIN || errno == EWOULDBLOCK
                connection.machine.readNothing()
                return isEmpty ? () : close(connection)
            }
            if count == 0 { return endInput(connection) }
            bytes += count
            turnBytes += count
            connection.machine.read(isShort: count < scratch.count)
            take(connection, UnsafeRawBufferPointer(rebasing: scratch[..<count]))
        }
    }

    /// The client sends no more; it may still wait for responses.
    private func endInput(_ connection: Connection) {
        switch connection.machine.inputEnded() {
        case .goOn: break
        case .close:
            // A complete response still has to be sent.
            flushLast(connection)
            close(connection)
        case .refuseHeader: refuseHeader(connection, .cut)
        }
    }

    private func take(_ connection: Connection, _ bytes: UnsafeRawBufferPointer) {
        if connection.machine.isLingering { return connection.machine.discarded(bytes.count) }
        if let pending = connection.pending {
            pending.bytes.append(contentsOf: bytes)
            return usePending(connection)
        }
        let used = use(connection, bytes)
        guard used < bytes.count, connection.machine.holdsInput else { return }
        change(connection, connection.machine.inputHeld())
        let rest = UnsafeRawBufferPointer(rebasing: bytes[used...])
        connection.pending = PendingInput(bytes: [UInt8](rest), parser: parser)
        parser = RequestParser()
    }

    /// Uses bytes that were held.
    private func usePending(_ connection: Connection) {
        guard let pending = connection.pending, mayUseInput(connection) else { return }
        if connection.machine.course == .announcing {
            guard useHeader(connection, pending) else { return }
        }
        swap(&parser, &pending.parser)
        let wasWaiting = pending.bytes
        let used = wasWaiting.withUnsafeBytes { use(connection, $0) }
        guard used > 0 else { return swap(&parser, &pending.parser) }
        if used == pending.bytes.count || !connection.machine.holdsInput {
            connection.pending = nil
            connection.machine.heldInputUsed()
            parser.reset()
        } else {
            pending.bytes.removeFirst(used)
            swap(&parser, &pending.parser)
            change(connection, connection.machine.inputHeld())
        }
    }

    /// Uses as many bytes as possible, and returns their number.
    ///
    /// The parser keeps its state of the head that the unused bytes begin.
    private func use(_ connection: Connection, _ bytes: UnsafeRawBufferPointer) -> Int {
        var offset = 0
        while !connection.machine.isClosed {
            if connection.content != nil {
                guard useContent(connection, bytes, &offset) else { return offset }
                continue
            }
            guard offset < bytes.count, mayUseInput(connection), hasTimeForMore() else { break }
            let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
            switch parser.parse(Span(_unsafeBytes: rest), configuration.wire) {
            case .needsMore:
                guard parser.hasOnlyEmptyLine, !connection.hasSkippedLine else { return offset }
                connection.hasSkippedLine = true
                parser.reset()
                return bytes.count
            case .complete(let count):
                connection.hasSkippedLine = false
                requestsInARow += 1
                take(connection, request: parser.head, in: rest)
                offset += count
                parser.reset()
            case .refused(let fault):
                parser.reset()
                refuseHead(connection, fault)
                return bytes.count
            }
        }
        return connection.machine.isClosed ? bytes.count : offset
    }

    /// Uses bytes as content; returns `false` if no more of them can be used now.
    private func useContent(
        _ connection: Connection,
        _ bytes: UnsafeRawBufferPointer,
        _ offset: inout Int
    ) -> Bool {
        // The last bytes may have filled the window: no later byte will report the end.
        guard let content = connection.content,
            connection.machine.content == .flowing || content.isAtEnd,
            let step = connection.content?.decode(Span(_unsafeBytes: bytes), from: offset)
        else { return false }
        let begin = offset
        switch step {
        case .data(let range):
            offset = range.upperBound
            takeContent(connection, UnsafeRawBufferPointer(rebasing: bytes[range]))
            countDropped(connection, framing: range.lowerBound - begin, content: range.count)
            return !connection.machine.isClosed
        case .needsMore:
            offset = bytes.count
            countDropped(connection, framing: offset - begin, content: 0)
            return false
        case .end(let end):
            offset = end
            connection.content = nil
            connection.sink?.finish()
            connection.sink = nil
            change(connection, connection.machine.contentEnded())
            return true
        case .refused(let fault):
            offset = bytes.count
            failContent(connection, fault == .tooLarge ? .contentTooLarge : .malformedChunk)
            return false
        }
    }

    private func takeContent(_ connection: Connection, _ bytes: UnsafeRawBufferPointer) {
        guard let sink = connection.sink else {
            return change(connection, connection.machine.contentCame())
        }
        switch sink.push(ByteChunk(copying: bytes)) {
        case .goOn: change(connection, connection.machine.contentCame())
        case .pause: change(connection, connection.machine.contentFilled())
        case .discard:
            connection.sink = nil
            change(connection, connection.machine.contentCame())
        }
    }

    /// Counts bytes of content that has no reader, framing included: up to 258 bytes of it may come
    /// with each byte of content.
    private func countDropped(_ connection: Connection, framing: Int, content: Int) {
        guard connection.sink == nil else { return }
        let isCounted = !Mutant.countsNoDroppedFraming.isOn
        connection.machine.discarded(content + (isCounted ? framing : 0))
    }

    private func failContent(_ connection: Connection, _ fault: RequestFault) {
        connection.content = nil
        connection.sink?.fail()
        connection.sink = nil
        switch connection.machine.contentFailed(hasResponseBegun: connection.response.hasBegun) {
        case .endAfterResponse: break
        case .refuse:
            connection.pendingResponse?.cancel()
            connection.pendingResponse = nil
            refuse(connection, fault)
        }
    }

    func resumeContent(_ connection: Connection) {
        guard connection.content != nil else { return }
        if connection.response.contentWanted() {
            let start = out.count
            out.append("HTTP/1.1 100 Continue\r\n\r\n")
            emitHead(from: start)
        }
        change(connection, connection.machine.contentWanted())
    }
}
