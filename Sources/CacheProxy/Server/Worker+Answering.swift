import CacheEngine
import HTTPCaching

/// Answering requests.
extension Worker {
    /// Takes a request whose head is complete.
    func take(_ connection: Connection, request head: RequestHead, in bytes: UnsafeRawBufferPointer)
    {
        counters.add(1, to: .requests)
        connection.machine.requestCame()
        connection.response = ResponseMachine(head)
        if log != nil { beginLog(connection, head, bytes) }
        switch head.methodKind {
        case .connect, .trace: return refuse(connection, .methodRefused)
        case .other where configuration.purging == .refused && Self.isPurge(head, bytes):
            return refuse(connection, .methodRefused)
        default: break
        }
        let url: RequestURL
        switch RequestURL.make(
            head,
            bytes,
            defaultAuthority: defaultAuthority,
            scheme: connection.scheme
        ) {
        case .success(let made): url = configuration.ignoredParameters.map(made.without) ?? made
        case .failure(let fault): return refuse(connection, fault)
        }
        if let host = url.hostOverride { connection.logLine?.host = Array(host.utf8) }
        if case .length(let count) = head.framing, count > configuration.wire.contentBytesMax {
            return refuse(connection, .contentTooLarge)
        }
        var fields = RequestFields.make(
            head,
            bytes,
            hostOverride: url.hostOverride,
            names: configuration.fieldNames
        )
        if head.flags.contains(.hasVia), loops.isLooping(fields.section) {
            return refuse(connection, .loopDetected)
        }
        if head.flags.contains(.isOldVersion) { fields.append("Via", loops.oldVersionVia) }
        if let encodings = configuration.encodings { fields = encodings.chosen(in: fields) }
        if configuration.forwarded != .off {
            fields = forward(fields, of: connection, head, url, bytes)
        }
        answer(
            connection,
            head,
            CacheRequest(method: Self.method(head, bytes), url: url.text, fields: consume fields)
        )
    }

    /// Answers at once, or begins to wait for the response.
    private func answer(
        _ connection: Connection,
        _ head: RequestHead,
        _ request: consuming CacheRequest
    ) {
        if !head.hasContent, head.methodKind == .get || head.methodKind == .head,
            answerAtOnce(connection, request)
        {
            return counters.add(1, to: .hits)
        }
        waitForResponse(connection, head, request)
    }

    /// Answers if that needs no waiting.
    private func answerAtOnce(
        _ connection: Connection,
        _ request: borrowing CacheRequest
    ) -> Bool {
        switch responder.immediateAnswer(to: request, { copy($0, to: connection) }) {
        case .none: return false
        case .response(let response): answer(connection, response)
        case .read:
            connection.response.endedWithHead()
            endResponse(connection)
        }
        return true
    }

    /// Appends a response to the output.
    private func copy(_ lent: borrowing BorrowedResponse, to connection: Connection) {
        beginResponse(connection, status: lent.status, lent, bodyCount: lent.bodyCount)
        if connection.response.framing != .none {
            let start = out.count
            lent.withBody { out.append($0) }
            emitHead(from: start)
        }
        if connection.logLine != nil { noteLog(connection, lent.status, lent.info) }
    }

    /// Answers with a body that is available, or waits for it.
    private func answer(_ connection: Connection, _ response: CacheResponse) {
        if let body = response.body.availableChunk {
            answer(connection, response, whole: body)
        } else {
            let pending = PendingResponse(connection.id, mailbox)
            connection.pendingResponse = pending
            change(connection, connection.machine.responsePending())
            pending.start(response)
        }
    }

    private func waitForResponse(
        _ connection: Connection,
        _ head: RequestHead,
        _ request: consuming CacheRequest
    ) {
        counters.add(1, to: .exchanges)
        let pending = PendingResponse(connection.id, mailbox)
        connection.pendingResponse = pending
        change(connection, connection.machine.responsePending())
        if head.hasContent {
            let sink = RequestContent { [mailbox] in mailbox.post(.wantsContent(pending)) }
            connection.content = BodyDecoder(
                head.framing,
                of: .request(contentBytesMax: configuration.wire.contentBytesMax)
            )
            connection.sink = sink
            // A client that waits for 100 has sent nothing yet: its time does not run.
            let isAwaited = !head.flags.contains(.expectsContinue)
            change(connection, connection.machine.contentBegan(isAwaited: isAwaited))
            var count: Int?
            if case .length(let length) = head.framing { count = length }
            request.body = BodyStream(sink, count: count)
            if head.methodKind == .get || head.methodKind == .head {
                // Content has no meaning in a GET (RFC 9110 §9.3.1), so the response is for this
                // client alone.
                request.options.policy = .bypass
                request.options.collapsing = .alone
            }
        } else if head.flags.contains(.hasContentLength), head.methodKind != .get,
            head.methodKind != .head
        {
            // A GET with a length of 0 is one without content, and may share a fetch.
            request.body = .empty
        }
        if !connection.response.isOldVersion {
            request.options.onInformational = { pending.inform(status: $0, fields: $1) }
        }
        pending.start(request, from: responder)
    }

    private static func method(_ head: RequestHead, _ bytes: UnsafeRawBufferPointer) -> HTTPMethod {
        switch head.methodKind {
        case .get: .get
        case .head: .head
        case .post: .post
        case .put: .put
        case .delete: .delete
        case .options: .options
        default: HTTPMethod(String(decoding: bytes[head.method], as: UTF8.self))
        }
    }

    private static func isPurge(_ head: RequestHead, _ bytes: UnsafeRawBufferPointer) -> Bool {
        RequestParser.equals(UnsafeRawBufferPointer(rebasing: bytes[head.method]), "purge")
    }
}

// MARK: - Messages of pending responses

extension Worker {
    func inform(_ connection: Connection, status: Int, fields: HeaderFields) {
        guard !connection.response.hasBegun, status > 101, status < 200 else { return }
        let start = out.count
        writer.writeInformational(status: status, fields: fields, to: out)
        emitHead(from: start)
        counters.count(status: status)
    }

    func takeResponse(_ connection: Connection, _ response: CacheResponse) {
        if let body = response.body.availableChunk {
            answer(connection, response, whole: body)
        } else {
            beginResponse(connection, response, bodyCount: response.body.count)
        }
    }

    func takeChunk(_ connection: Connection, _ chunk: ByteChunk) {
        switch connection.response.chunk(chunk.count) {
        case .drop:
            connection.pendingResponse?.acknowledge(PendingResponse.cost(of: chunk))
            return
        case .send: emit(chunk)
        case .sendLast(let count):
            emit(chunk[0..<count])
            connection.pendingResponse?.cancel()
            return finishResponse(connection)
        case .sendAsChunk:
            let start = out.count
            out.append(hexadecimal: chunk.count)
            out.append("\r\n")
            emitHead(from: start)
            emit(chunk)
            let end = out.count
            out.append("\r\n")
            emitHead(from: end)
        }
        connection.unacknowledgedBytes += PendingResponse.cost(of: chunk)
    }

    /// The response is complete, or its source takes it for complete.
    func finishResponse(_ connection: Connection) {
        switch connection.response.end() {
        case .nothing: endResponse(connection)
        case .sendLastChunk:
            let start = out.count
            out.append("0\r\n\r\n")
            emitHead(from: start)
            endResponse(connection)
        case .cut: cutResponse(connection)
        }
    }

    func takeFailure(_ connection: Connection, _ error: any Error) {
        switch connection.response.fail() {
        case .answerError:
            answer(connection, GatewayError.response(for: error, name: configuration.name))
        case .cut: cutResponse(connection)
        case .reset:
            countAborted(connection)
            connection.pendingResponse = nil
            flushLast(connection)
            finishLog(connection)
            if !connection.machine.isClosed { reset(connection) }
        }
    }

    /// Ends the connection after an incomplete response; the close tells the client.
    private func cutResponse(_ connection: Connection) {
        countAborted(connection)
        connection.machine.responseBroken()
        endResponse(connection)
    }

    /// Refuses a head that cannot be read.
    func refuseHead(_ connection: Connection, _ fault: RequestFault) {
        connection.machine.requestCame()
        connection.response = ResponseMachine()
        if log != nil { beginLog(connection) }
        refuse(connection, fault)
    }

    /// Refuses the open request; the connection ends after the response.
    func refuse(_ connection: Connection, _ fault: RequestFault) {
        counters.add(1, to: .refused)
        connection.machine.refused()
        connection.content = nil
        connection.pending = nil
        answer(connection, GatewayError.response(for: fault, name: configuration.name))
    }
}

// MARK: - Beginning and ending a response

extension Worker {
    private func answer(_ connection: Connection, _ response: CacheResponse, whole body: ByteChunk)
    {
        beginResponse(connection, response, bodyCount: body.count)
        if connection.response.framing != .none { emit(body) }
        connection.response.endedWithHead()
        endResponse(connection)
    }

    private func beginResponse(_ connection: Connection, _ response: CacheResponse, bodyCount: Int?)
    {
        beginResponse(connection, status: response.status, response.fields, bodyCount: bodyCount)
        if connection.logLine != nil { noteLog(connection, response.status, response.info) }
    }

    private func beginResponse<Fields: FieldLines & ~Copyable>(
        _ connection: Connection,
        status: Int,
        _ fields: borrowing Fields,
        bodyCount: Int?
    ) {
        let framing = connection.response.begin(status: status, bodyCount: bodyCount)
        let facts = ConnectionMachine.PersistenceFacts(
            mayPersist: connection.response.mayPersist,
            leavesContentUnasked: connection.response.awaitsContinue,
            contentRest: connection.content?.lengthRest ?? 0,
            isDraining: isDraining
        )
        let goesOn = connection.machine.responseBegan(facts)
        let start = out.count
        writer.write(
            status: status,
            fields: fields,
            framing: framing,
            persistence: connection.response.persistence(goesOn: goesOn),
            nowSeconds: nowSeconds,
            to: out
        )
        emitHead(from: start)
        counters.count(status: status)
    }

    private func endResponse(_ connection: Connection) {
        finishLog(connection)
        // The rest of the content is read and dropped, within its limit.
        if connection.content != nil { connection.answeredAt = now }
        connection.sink?.fail()
        connection.sink = nil
        connection.pendingResponse = nil
        connection.unacknowledgedBytes = 0
        change(connection, connection.machine.responseEnded())
    }
}
