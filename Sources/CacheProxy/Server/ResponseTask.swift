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
    func start(_ request: CacheRequest, from responder: any Responder) {
        var request = request
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

    /// Delivers the body of a response whose head is there.
    func start(_ response: CacheResponse) {
        attach(Task(executorPreference: mailbox) { [self] in await deliver(response) })
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
            await deliver(try await responder.respond(to: request))
        } catch {
            mailbox.post(.failed(self, error))
        }
    }

    nonisolated(nonsending) private func deliver(_ response: CacheResponse) async {
        do {
            mailbox.post(.answered(self, response))
            // The worker sends an available body together with the head.
            if response.body.availableChunk != nil { return }
            for try await chunk in response.body {
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
