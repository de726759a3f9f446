internal import CacheEngine
internal import Synchronization

/// One request and its answer, shared by the event thread that moves the bytes and the task that
/// reads them.
final class Exchange: BodySource {
    private struct Shared: Sendable {
        var state: ExchangeState
        var waiter: CheckedContinuation<ExchangeEvent, Never>?

        mutating func takeWaiter() -> CheckedContinuation<ExchangeEvent, Never>? {
            defer { waiter = nil }
            return waiter
        }
    }

    let id = TransferID.next()
    private let loop: EventLoop
    private let shared: Mutex<Shared>

    init(loop: EventLoop, windowBytesMax: Int) {
        self.loop = loop
        shared = Mutex(Shared(state: ExchangeState(windowBytesMax: windowBytesMax)))
    }

    // MARK: - The reader's side

    func start(_ request: PreparedRequest) {
        var upload: UploadPipe?
        switch request.content {
        case .none: break
        case .chunk(let chunk): upload = UploadPipe(chunk)
        case .stream(let body, let count):
            upload = UploadPipe(
                body,
                count: count,
                windowBytesMax: loop.configuration.limits.windowBytesMax,
                onBytes: { [loop, id] in loop.post(.resumeUpload(id)) }
            )
        }
        guard loop.post(.start(request, upload, self)) else {
            upload?.close()
            finish(.failure(CacheError(.originFailed, detail: "The origin was shut down")))
            return
        }
    }

    /// The next event; the last one again and again.
    ///
    /// One reader at a time, as `BodySource` demands; a second one gets an error.
    func nextEvent() async -> ExchangeEvent {
        if let event = take() { return event }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { wait($0) }
        } onCancel: {
            abandon(CancellationError())
        }
    }

    func next() async throws -> ByteChunk? {
        while true {
            switch await nextEvent() {
            case .chunk(let chunk): return chunk
            case .end: return nil
            case .failure(let error): throw error
            case .informational, .head: continue
            }
        }
    }

    func cancel() { abandon(CancellationError()) }

    private func take() -> ExchangeEvent? {
        let (event, resumes) = shared.withLock { ($0.state.take(), $0.state.resume()) }
        if resumes { loop.post(.resume(id)) }
        return event
    }

    private func wait(_ continuation: CheckedContinuation<ExchangeEvent, Never>) {
        let (event, resumes) = shared.withLock { shared -> (ExchangeEvent?, Bool) in
            if shared.waiter != nil {
                return (.failure(CacheError(.originFailed, detail: "Two readers")), false)
            }
            let event = shared.state.take()
            if event == nil { shared.waiter = continuation }
            return (event, shared.state.resume())
        }
        if resumes { loop.post(.resume(id)) }
        if let event { continuation.resume(returning: event) }
    }

    private func abandon(_ error: any Error) {
        let waiter = shared.withLock { shared in
            shared.state.abandon(error)
            return shared.takeWaiter()
        }
        waiter?.resume(returning: .failure(error))
        loop.post(.cancel(id))
    }

    // MARK: - The event thread's side

    /// Lets libcurl ask for content once more, when it is out of its callback.
    func resumeUpload() { loop.post(.resumeUpload(id)) }

    /// Takes bytes of the body; `held` means: keep them, the reader is behind.
    func offer(_ bytes: UnsafeRawBufferPointer) -> ExchangeState.Admission {
        let admission = shared.withLock { $0.state.admit() }
        guard case .accepted = admission else { return admission }
        deliver(.chunk(ByteChunk(copying: bytes)))
        return .accepted
    }

    func deliver(_ event: ExchangeEvent) {
        signal { $0.append(event) }
    }

    func finish(_ outcome: ExchangeEvent) {
        signal { $0.finish(outcome) }
    }

    private func signal(_ change: (inout ExchangeState) -> Void) {
        let wake = shared.withLock { shared -> (() -> Void)? in
            change(&shared.state)
            #if ENGINE_CHECKS
                shared.state.checkInvariants()
            #endif
            guard shared.waiter != nil, let event = shared.state.take(),
                let waiter = shared.takeWaiter()
            else { return nil }
            return { waiter.resume(returning: event) }
        }
        wake?()
    }
}
