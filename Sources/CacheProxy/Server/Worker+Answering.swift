import CacheEngine
import HTTPCaching

/// From requests to answers.
extension Worker {
    /// Takes a request whose head is whole.
    func take(_ connection: Connection, request head: RequestHead, in bytes: UnsafeRawBufferPointer)
    {
        counters.add(1, to: .requests)
        connection.answer = AnswerProgress(head)
        if log != nil { beginLog(connection, head, bytes) }
        switch head.methodKind {
        case .connect, .trace: return refuse(connection, .methodRefused)
        case .other where configuration.purging == .refused && Self.isPurge(head, bytes):
            return refuse(connection, .methodRefused)
        default: break
        }
        let url: RequestURL
        switch RequestURL.make(head, bytes, defaultAuthority: defaultAuthority) {
        case .success(let made): url = made
        case .failure(let fault): return refuse(connection, fault)
        }
        if case .length(let count) = head.framing, count > configuration.wire.contentBytesMax {
            return refuse(connection, .contentTooLarge)
        }
        let fields = RequestFields.make(head, bytes, hostOverride: url.hostOverride)
        if head.flags.contains(.hasVia), loops.isLooping(fields.section) {
            return refuse(connection, .loopDetected)
        }
        let request = CacheRequest(
            method: Self.method(head, bytes),
            url: url.text,
            fields: fields
        )
        if !head.hasContent, head.methodKind == .get || head.methodKind == .head,
            let response = responder.cachedResponse(for: request)
        {
            counters.add(1, to: .hits)
            return answer(connection, response)
        }
        startExchange(connection, head, request)
    }

    /// An answer with its whole body, or with one that has to be waited for.
    private func answer(_ connection: Connection, _ response: CacheResponse) {
        if let body = response.body.availableChunk {
            beginAnswer(connection, response, bodyCount: body.count)
            if connection.answer.framing != .none { emit(connection, body) }
            connection.answer.remaining = 0
            endAnswer(connection)
        } else {
            let exchange = Exchange(connection.id, mailbox)
            connection.exchange = exchange
            removeDeadline(connection)
            exchange.start(response)
        }
    }

    private func startExchange(
        _ connection: Connection,
        _ head: RequestHead,
        _ request: CacheRequest
    ) {
        counters.add(1, to: .exchanges)
        let exchange = Exchange(connection.id, mailbox)
        var request = request
        connection.exchange = exchange
        connection.discardedBytes = 0
        removeDeadline(connection)
        if let decoder = ContentDecoder(head.framing) {
            let sink = RequestContent { [mailbox] in mailbox.post(.wantsContent(exchange)) }
            connection.content = decoder
            connection.sink = sink
            // A client that waits for 100 has sent nothing yet and is not to be hurried.
            connection.isContentPaused = head.flags.contains(.expectsContinue)
            if !connection.isContentPaused {
                setDeadline(connection, after: configuration.timeouts.contentMilliseconds)
            }
            var count: Int?
            if case .length(let length) = head.framing { count = length }
            request.body = BodyStream(sink, count: count)
            if head.methodKind == .get || head.methodKind == .head {
                // Content has no meaning in a GET; whatever an origin makes of it is not for others.
                request.options.policy = .bypass
                request.options.collapsing = .alone
            }
        } else if head.flags.contains(.hasContentLength) {
            request.body = .empty
        }
        if !connection.answer.isOldVersion {
            request.options.onInformational = { [mailbox] status, fields in
                mailbox.post(.informational(exchange, status: status, fields: fields))
            }
        }
        exchange.start(request, from: responder)
    }

    private static func method(_ head: RequestHead, _ bytes: UnsafeRawBufferPointer) -> Method {
        switch head.methodKind {
        case .get: .get
        case .head: .head
        case .post: .post
        case .put: .put
        case .delete: .delete
        case .options: .options
        default: Method(String(decoding: bytes[head.method], as: UTF8.self))
        }
    }

    private static func isPurge(_ head: RequestHead, _ bytes: UnsafeRawBufferPointer) -> Bool {
        RequestParser.equals(UnsafeRawBufferPointer(rebasing: bytes[head.method]), "purge")
    }
}

extension AnswerProgress {
    init(_ head: RequestHead) {
        isHead = head.methodKind == .head
        isOldVersion = head.flags.contains(.isOldVersion)
        mayPersist = head.mayPersist
        asksToPersist = head.flags.contains(.wantsKeepAlive)
        expectsContinue = head.flags.contains(.expectsContinue) && !isOldVersion && head.hasContent
    }
}

// MARK: - What exchanges bring

extension Worker {
    func inform(_ connection: Connection, status: Int, fields: HeaderFields) {
        guard !connection.answer.hasBegun, status > 101, status < 200 else { return }
        let start = out.count
        ResponseHeadWriter.writeInformational(status: status, fields: fields, to: out)
        emitHead(connection, from: start)
        counters.count(status: status)
    }

    func takeAnswer(_ connection: Connection, _ response: CacheResponse) {
        if let body = response.body.availableChunk {
            beginAnswer(connection, response, bodyCount: body.count)
            if connection.answer.framing != .none { emit(connection, body) }
            connection.answer.remaining = 0
            finishAnswer(connection)
        } else {
            beginAnswer(connection, response, bodyCount: response.body.count)
        }
    }

    func takeChunk(_ connection: Connection, _ chunk: ByteChunk) {
        let framing = connection.answer.framing
        switch framing {
        case .none:
            connection.exchange?.acknowledge(chunk.count)
            return
        case .length:
            guard chunk.count <= connection.answer.remaining else {
                // More than was promised is not the client's to see.
                emit(connection, chunk[0..<connection.answer.remaining])
                connection.answer.remaining = 0
                connection.exchange?.cancel()
                return finishAnswer(connection)
            }
            connection.answer.remaining -= chunk.count
            emit(connection, chunk)
        case .chunked:
            let start = out.count
            out.append(hexadecimal: chunk.count)
            out.append("\r\n")
            emitHead(connection, from: start)
            emit(connection, chunk)
            let end = out.count
            out.append("\r\n")
            emitHead(connection, from: end)
        case .untilClose: emit(connection, chunk)
        }
        connection.unacknowledgedBytes += chunk.count
    }

    /// The exchange has given everything.
    func finishAnswer(_ connection: Connection) {
        connection.exchange = nil
        connection.unacknowledgedBytes = 0
        guard connection.answer.remaining == 0 else { return breakOff(connection) }
        if connection.answer.framing == .chunked {
            let start = out.count
            out.append("0\r\n\r\n")
            emitHead(connection, from: start)
        }
        endAnswer(connection)
    }

    func takeFailure(_ connection: Connection, _ error: any Error) {
        connection.exchange = nil
        guard !connection.answer.hasBegun else { return breakOff(connection) }
        let response = GatewayError.response(for: error, name: configuration.name)
        beginAnswer(connection, response, bodyCount: response.body.count)
        if connection.answer.framing != .none, let body = response.body.availableChunk {
            emit(connection, body)
        }
        connection.answer.remaining = 0
        endAnswer(connection)
    }

    /// The answer ends early, and so it does for the client: without the end its framing promises.
    private func breakOff(_ connection: Connection) {
        counters.add(1, to: .aborted)
        guard connection.answer.framing == .untilClose else {
            // The close tells it, behind all that was answered before.
            connection.closesBehindAnswer = true
            return endAnswer(connection)
        }
        flush(connection)
        finishLog(connection)
        if !connection.isClosed { reset(connection) }
    }

    /// A request that is not even looked at; the connection ends behind the answer.
    func refuse(_ connection: Connection, _ fault: RequestFault) {
        counters.add(1, to: .refused)
        connection.answer.mayPersist = false
        connection.mustLinger = true
        connection.content = nil
        connection.pending = nil
        let response = GatewayError.response(for: fault, name: configuration.name)
        beginAnswer(connection, response, bodyCount: response.body.count)
        if connection.answer.framing != .none, let body = response.body.availableChunk {
            emit(connection, body)
        }
        connection.answer.remaining = 0
        endAnswer(connection)
    }
}

// MARK: - Beginning and ending an answer

extension Worker {
    private func beginAnswer(_ connection: Connection, _ response: CacheResponse, bodyCount: Int?) {
        let framing = ResponseFraming(
            status: response.status,
            isHead: connection.answer.isHead,
            bodyCount: bodyCount,
            isOldVersion: connection.answer.isOldVersion
        )
        connection.answer.framing = framing
        connection.answer.hasBegun = true
        if case .length(let count) = framing { connection.answer.remaining = count }
        if !connection.answer.mayPersist || isDraining || framing == .untilClose
            || connection.hasEnded && connection.pending == nil
            || connection.answer.expectsContinue && connection.content != nil
        {
            connection.closesBehindAnswer = true
        }
        let start = out.count
        writer.write(
            status: response.status,
            fields: response.fields,
            framing: framing,
            persistence: persistence(connection),
            nowSeconds: nowSeconds,
            to: out
        )
        emitHead(connection, from: start)
        counters.count(status: response.status)
        if connection.logLine != nil { noteLog(connection, response) }
    }

    private func persistence(_ connection: Connection) -> ResponseHeadWriter.Persistence {
        if connection.closesBehindAnswer { return .ends }
        return connection.answer.isOldVersion && connection.answer.asksToPersist
            ? .goesOnSaidSo : .goesOn
    }

    private func endAnswer(_ connection: Connection) {
        finishLog(connection)
        // The rest of the content is read and dropped, within its limit.
        connection.sink?.fail()
        connection.sink = nil
        if connection.content != nil {
            connection.isContentPaused = false
            if connection.answer.expectsContinue {
                // The client may or may not send what it was never asked for: nobody can tell where
                // the next request would begin (RFC 9110 §10.1.1).
                connection.closesBehindAnswer = true
            }
            setDeadline(connection, after: configuration.timeouts.contentMilliseconds)
        }
        connection.exchange = nil
    }
}
