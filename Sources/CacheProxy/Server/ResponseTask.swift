import CacheEngine
import Synchronization

/// The task that gets a response which is not there at once, and the count of its bytes that the
/// worker has not sent.
///
/// At most a window of the body is between the task and the socket; a slow client makes the task
/// wait, and with it the origin or the store.
final class ResponseTask: Sendable {
    static let windowBytes = 256 * 1024

    private struct State {
        var task: Task<Void, Never>?
        var waiter: UnsafeContinuation<Void, Never>?
        var pendingBytes = 0
        var isCancelled = false
    }

    let connection: ConnectionID
    private let mailbox: Mailbox
    private let state = Mutex(State())

    init(_ connection: ConnectionID, _ mailbox: Mailbox) {
        self.connection = connection
        self.mailbox = mailbox
    }

    /// Starts the task that gets the response.
    ///
    /// The cache's own tasks for it run on the worker as well.
    func start(_ request: consuming CacheRequest, from responder: any Responder) {
        request.options.taskExecutor = mailbox
        attach(
            Task(executorPreference: mailbox) { [self, request] in await run(request, responder) }
        )
    }

    /// Passes on a 1xx head of the origin.
    func inform(status: Int, fields: HeaderFields) {
        mailbox.post(.informational(self, status: status, fields: fields))
    }

    private func attach(_ task: Task<Void, Never>) {
        let isLate = state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if isLate { task.cancel() }
    }

    /// Delivers a response whose body is not there at once.
    func start(_ response: CacheResponse) {
        guard let body = answered(response) else { return }
        attach(Task(executorPreference: mailbox) { [self] in await deliver(body) })
    }

    /// Ends the task: the client left.
    func cancel() {
        let (task, waiter) = state.withLock { state in
            state.isCancelled = true
            return (state.task.take(), state.waiter.take())
        }
        task?.cancel()
        waiter?.resume()
    }

    /// The worker has sent `count` bytes.
    func acknowledge(_ count: Int) {
        let waiter = state.withLock { state in
            state.pendingBytes -= count
            return state.pendingBytes < Self.windowBytes ? state.waiter.take() : nil
        }
        waiter?.resume()
    }

    nonisolated(nonsending) private func run(_ request: CacheRequest, _ responder: any Responder)
        async
    {
        do {
            let body = answered(try await responder.respond(to: request))
            if let body { await deliver(body) }
        } catch {
            mailbox.post(.failed(self, error))
        }
    }

    /// Passes on the response; returns its body if it is not available at once.
    ///
    /// The worker sends an available body together with the head. Not inlined, so that the frame of
    /// a request that waits stays small.
    @inline(never)
    private func answered(_ response: CacheResponse) -> BodyStream? {
        mailbox.post(.answered(self, response))
        return response.body.availableChunk == nil ? response.body : nil
    }

    @inline(never)
    nonisolated(nonsending) private func deliver(_ body: BodyStream) async {
        do {
            for try await chunk in body {
                mailbox.post(.chunk(self, chunk))
                await waitForRoom(after: chunk.count)
                try Task.checkCancellation()
            }
            mailbox.post(.ended(self))
        } catch {
            mailbox.post(.failed(self, error))
        }
    }

    nonisolated(nonsending) private func waitForRoom(after count: Int) async {
        let mustWait = state.withLock { state in
            state.pendingBytes += count
            return state.pendingBytes >= Self.windowBytes && !state.isCancelled
        }
        guard mustWait else { return }
        await withUnsafeContinuation { continuation in
            let goesOn = state.withLock { state in
                if state.pendingBytes < Self.windowBytes || state.isCancelled { return true }
                state.waiter = continuation
                return false
            }
            if goesOn { continuation.resume() }
        }
    }
}
