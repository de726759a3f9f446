package import CacheEngine
internal import Synchronization

/// The requests of a reader to the event loop that moves the bytes of its response.
package protocol ExchangeLoop: Sendable {
    /// The reader has room again.
    func resume(_ exchange: TransferID)
    /// Content of the request is available again.
    func resumeUpload(_ exchange: TransferID)
    /// The reader has ended.
    func cancel(_ exchange: TransferID)
}

/// One request and its response, shared by the event thread that moves the bytes and the task that
/// reads them.
package final class Exchange: BodySource, LoopExchange {
    package typealias OnInformational = @Sendable (_ status: Int, _ fields: HeaderFields) -> Void
    package typealias OnAnswer = @Sendable (consuming LoopAnswer) -> Void

    /// The reader, while no event is there for it; it is woken once, so there is one of it.
    private enum Waiter: ~Copyable {
        /// It is a task that sleeps.
        case task(UnsafeContinuation<ExchangeEvent, Never>)
        /// It has no task, and waits for the response.
        case call(OnInformational?, OnAnswer)
    }

    private struct Shared: ~Copyable {
        var state: ExchangeState
        var waiter: Waiter?
    }

    package let id = TransferID.next()
    private let loop: any ExchangeLoop
    private let shared: Mutex<Shared>

    package init(loop: consuming any ExchangeLoop, windowBytesMax: Int) {
        self.loop = loop
        shared = Mutex(Shared(state: ExchangeState(windowBytesMax: windowBytesMax)))
    }

    // MARK: - The reader's side

    /// Returns the response as soon as its head has arrived.
    nonisolated(nonsending) package func response(
        onInformational: OnInformational?
    ) async throws -> OriginResponse {
        while true {
            if let response = try response(of: await nextEvent(), onInformational) {
                return response
            }
        }
    }

    /// Calls `told` once with the response, as soon as its head has arrived; takes the place of
    /// `response`.
    ///
    /// The call comes from the thread that delivers the head or cancels, outside the lock.
    package func whenAnswered(
        onInformational: consuming OnInformational?,
        _ told: consuming @escaping OnAnswer
    ) {
        wait(.call(onInformational, told))
    }

    /// The response that begins with `event`; `nil` if that is not its final head.
    ///
    /// Not inlined, so that the frame of a request that waits stays small.
    @inline(never)
    private func response(
        of event: ExchangeEvent,
        _ onInformational: OnInformational?
    ) throws -> OriginResponse? {
        switch event {
        case .informational(let head):
            onInformational?(head.status, head.fields)
            return nil
        case .head(let head): return response(head)
        case .failure(let error): throw error
        case .chunk, .end: throw bodyWithoutHead()
        }
    }

    private func response(_ head: ResponseHead) -> OriginResponse {
        let body: BodyStream
        if let content = head.content {
            body = BodyStream(content)
        } else {
            body = head.hasContent ? BodyStream(self, count: head.contentBytes) : .empty
        }
        return OriginResponse(status: head.status, fields: head.fields, body: body)
    }

    private func bodyWithoutHead() -> CacheError {
        cancel()
        return CacheError(.originMisbehaved, detail: "The origin sent a body without a head")
    }

    /// Returns the next event; the last event is returned repeatedly.
    ///
    /// Only one reader at a time is allowed, as `BodySource` requires; a second one gets an error.
    @inline(never)
    nonisolated(nonsending) package func nextEvent() async -> ExchangeEvent {
        if let event = take() { return event }
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { wait(.task($0)) }
        } onCancel: {
            abandon(CancellationError())
        }
    }

    package func next() async throws -> ByteChunk? {
        while true {
            switch await nextEvent() {
            case .chunk(let chunk): return chunk
            case .end: return nil
            case .failure(let error): throw error
            case .informational, .head: continue
            }
        }
    }

    package func cancel() { abandon(CancellationError()) }

    private func take() -> ExchangeEvent? {
        let (event, resumes) = shared.withLock { ($0.state.take(), $0.state.resume()) }
        if resumes { loop.resume(id) }
        return event
    }

    private func wait(_ waiter: consuming Waiter) {
        // An optional, because a closure can take what is in it.
        var waiting: Waiter? = waiter
        let (event, resumes) = shared.withLock { shared -> (ExchangeEvent?, Bool) in
            if shared.waiter != nil {
                let error = CacheError(.originFailed, detail: "Two tasks read one body at once")
                return (.failure(error), false)
            }
            let event = shared.state.take()
            if event == nil { shared.waiter = waiting.take() }
            return (event, shared.state.resume())
        }
        if resumes { loop.resume(id) }
        if let event, let waiter = waiting.take() { wake(waiter, event) }
    }

    private func wake(_ waiter: consuming Waiter, _ event: consuming ExchangeEvent) {
        switch consume waiter {
        case .task(let continuation): continuation.resume(returning: event)
        case .call(let onInformational, let told):
            switch event {
            case .informational(let head):
                onInformational?(head.status, head.fields)
                whenAnswered(onInformational: onInformational, told)
            case .head(let head): told(.response(response(head)))
            case .failure(let error): told(.failure(error))
            case .chunk, .end: told(.failure(bodyWithoutHead()))
            }
        }
    }

    private func abandon(_ error: any Error) {
        let waiter = shared.withLock { shared in
            shared.state.abandon(error)
            return shared.waiter.take()
        }
        if let waiter { wake(waiter, .failure(error)) }
        loop.cancel(id)
    }

    // MARK: - The event thread's side

    /// Lets libcurl ask for content again, after its current callback has returned.
    func resumeUpload() { loop.resumeUpload(id) }

    /// Accepts bytes of the body; with `held` the caller must keep them, because the reader lags
    /// behind.
    func offer(_ bytes: UnsafeRawBufferPointer) -> ExchangeState.Admission {
        let admission = admit()
        guard case .accepted = admission else { return admission }
        deliver(.chunk(ByteChunk(copying: bytes)))
        return .accepted
    }

    /// Whether the reader wants more bytes; after `held`, `resume` says when to continue.
    package func admit() -> ExchangeState.Admission { shared.withLock { $0.state.admit() } }

    package func deliver(_ event: consuming ExchangeEvent) {
        let waiter = shared.withLock { shared -> Waiter? in
            // A reader that waits has taken every earlier event.
            guard shared.state.isOpen, let waiter = shared.waiter.take() else {
                shared.state.append(event)
                return nil
            }
            return waiter
        }
        if let waiter { wake(waiter, event) }
    }

    package func finish(_ outcome: ExchangeEvent) {
        let waiter = shared.withLock { shared in
            shared.state.finish(outcome)
            #if ENGINE_CHECKS
                shared.state.checkInvariants()
            #endif
            return shared.waiter.take()
        }
        if let waiter { wake(waiter, outcome) }
    }
}
