import CacheEngine
import Synchronization

/// The work for a response which is not there at once, and the cost of its pieces that the worker
/// has not acknowledged.
///
/// At most a window of the body is on its way to the worker, which acknowledges what its output has
/// room for; a slow client makes the reader, a task, wait, and with it the origin or the store.
final class PendingResponse: Sendable {
    static let windowBytes = 256 * 1024

    /// The part of the window that a piece takes.
    static func cost(of chunk: ByteChunk) -> Int {
        chunk.count + (Mutant.countsNoPieces.isOn ? 0 : ByteChunk.overheadBytes)
    }

    /// Invariant: there is no response once the work is cancelled.
    ///
    /// The body of a response may hold its request, and the request holds this object through its
    /// hook: nothing would release the three.
    private struct State {
        /// The response, until the worker takes it.
        var response: CacheResponse?
        var waiter: UnsafeContinuation<Void, Never>?
        /// The cost of the pieces on their way.
        var pendingBytes = 0
        var isCancelled = false

        var keepsResponse: Bool { !isCancelled || Mutant.keepsAnswersOfGoneClients.isOn }
    }

    let connection: ConnectionID
    private let mailbox: Mailbox
    private let answer = PendingAnswer()
    private let state = Mutex(State())

    init(_ connection: ConnectionID, _ mailbox: Mailbox) {
        self.connection = connection
        self.mailbox = mailbox
    }

    /// Begins the request.
    ///
    /// The cache's tasks for it run on the worker.
    func start(_ request: consuming CacheRequest, from responder: any Responder) {
        request.options.taskExecutor = mailbox
        responder.begin(request, answer) { [self] result in
            switch consume result {
            case .success(let response): start(response)
            case .failure(let error): mailbox.post(.failed(self, error))
            }
        }
    }

    /// Passes on a 1xx head of the origin.
    func inform(status: Int, fields: HeaderFields) {
        mailbox.post(.informational(self, status: status, fields: fields))
    }

    /// Passes on the response, and reads its body in a task, unless the body is there: the worker
    /// then sends it together with the head.
    func start(_ response: consuming CacheResponse) {
        let body = response.body.isAvailable ? nil : response.body
        // Here and not in the message, because every message is as wide as the widest one. An
        // optional, because a closure can take what is in it, and would copy the response.
        var given: CacheResponse? = consume response
        state.withLock { state in
            if state.keepsResponse { state.response = given.take() }
        }
        mailbox.post(.answered(self))
        guard let body else { return }
        answer.attach(Task(executorPreference: mailbox) { [self] in await deliver(body) })
    }

    /// The response, once it has been announced.
    func takeResponse() -> CacheResponse? { state.withLock { $0.response.take() } }

    /// Ends the work: the client left.
    func cancel() {
        answer.cancel()
        // Released outside the lock, as the source of its body learns of it then.
        let (waiter, response) = state.withLock { state in
            state.isCancelled = true
            return (state.waiter.take(), state.keepsResponse ? nil : state.response.take())
        }
        waiter?.resume()
        _ = consume response
    }

    /// The worker's output has room for more, after pieces of this cost.
    func acknowledge(_ cost: Int) {
        let waiter = state.withLock { state in
            state.pendingBytes -= cost
            return state.pendingBytes < Self.windowBytes ? state.waiter.take() : nil
        }
        waiter?.resume()
    }

    nonisolated(nonsending) private func deliver(_ body: BodyStream) async {
        do {
            for try await chunk in body {
                mailbox.post(.chunk(self, chunk))
                await waitForRoom(after: Self.cost(of: chunk))
                try Task.checkCancellation()
            }
            mailbox.post(.ended(self))
        } catch {
            mailbox.post(.failed(self, error))
        }
    }

    nonisolated(nonsending) private func waitForRoom(after cost: Int) async {
        let mustWait = state.withLock { state in
            state.pendingBytes += cost
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
