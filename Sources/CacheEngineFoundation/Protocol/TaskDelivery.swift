#if canImport(FoundationNetworking)
    internal import CacheEngine
    internal import Dispatch
    internal import Foundation
    internal import FoundationNetworking

    /// Delivers the events of one load to its task.
    ///
    ///     running ──pause──▶ paused ──resume──▶ running ──finish, fail, cancel──▶ over
    ///
    /// URLSession keeps a task's state on the task's work queue, and calls `begin`, `pause`,
    /// `resume` and `cancel` there. Every event is delivered there too, and none after the end:
    /// URLSession traps on an event of a task that it has completed.
    ///
    /// `@unchecked Sendable`: the variables, and the protocol, are used on the work queue alone.
    final class TaskDelivery: @unchecked Sendable {
        let task: URLSessionTask
        let internals: TaskInternals
        private let urlProtocol: CachingURLProtocol
        private let client: any URLProtocolClient

        private var isPaused = false
        private var isOver = false
        private var work: Task<Void, Never>?
        /// The event that waits until the task is resumed.
        private var waiting: (() -> Void)?

        init(
            _ urlProtocol: CachingURLProtocol,
            _ task: URLSessionTask,
            _ client: any URLProtocolClient,
            _ internals: TaskInternals
        ) {
            self.urlProtocol = urlProtocol
            self.task = task
            self.client = client
            self.internals = internals
        }

        // MARK: - Called on the work queue

        func begin(_ load: ProtocolLoad) {
            work = Task { await load.run() }
        }

        func pause() { isPaused = true }

        func resume() {
            isPaused = false
            waiting.take()?()
        }

        /// Ends the load without an event: URLSession itself reports the cancellation.
        func cancel() {
            isOver = true
            work?.cancel()
            waiting.take()?()
        }

        // MARK: - Called by the load

        /// An event, and the protocol and client that report it.
        typealias Event =
            @Sendable (_ client: any URLProtocolClient, _ urlProtocol: CachingURLProtocol) -> Void

        /// Delivers an event once the task is not suspended.
        ///
        /// - Throws: `CancellationError` if the load is over.
        func deliver(_ event: @escaping Event) async throws {
            try await perform { event($0.client, $0.urlProtocol) }
        }

        /// Delivers the last events of the task.
        func finish(_ events: @escaping Event = { _, _ in }) async throws {
            try await perform { delivery in
                delivery.isOver = true
                delivery.urlProtocol.loadHasEnded()
                events(delivery.client, delivery.urlProtocol)
                delivery.client.urlProtocolDidFinishLoading(delivery.urlProtocol)
            }
        }

        /// Ends the task with an error, unless it has ended.
        func fail(_ error: URLError) async {
            try? await perform { delivery in
                delivery.isOver = true
                delivery.urlProtocol.loadHasEnded()
                delivery.client.urlProtocol(delivery.urlProtocol, didFailWithError: error)
            }
        }

        private func perform(_ act: @escaping @Sendable (TaskDelivery) -> Void) async throws {
            try await withUnsafeThrowingContinuation { continuation in
                internals.workQueue.async { self.run(act, continuation) }
            }
        }

        private func run(
            _ act: @escaping @Sendable (TaskDelivery) -> Void,
            _ continuation: UnsafeContinuation<Void, any Error>
        ) {
            if isOver { return continuation.resume(throwing: CancellationError()) }
            if isPaused {
                waiting = { self.run(act, continuation) }
                return
            }
            act(self)
            continuation.resume()
        }

        // MARK: - The delegate

        /// Waits until the delegate has handled all events delivered so far.
        ///
        /// URLSession queues events without a limit, so a load waits after each window.
        func settle() async {
            guard internals.handover == .delegate else { return }
            await withUnsafeContinuation { continuation in
                internals.session.delegateQueue.addOperation { continuation.resume() }
            }
        }

        /// Asks the task's delegate whether to follow a redirect; a task without one follows it.
        func askAboutRedirect(
            _ response: HTTPURLResponse,
            to request: URLRequest
        ) async throws -> URLRequest? {
            try Task.checkCancellation()
            guard let delegate = task.delegate else { return request }
            let (session, task) = (internals.session, task)
            return try await Race<URLRequest?>.answer { answer in
                session.delegateQueue.addOperation {
                    delegate.urlSession(
                        session,
                        task: task,
                        willPerformHTTPRedirection: response,
                        newRequest: request,
                        completionHandler: answer
                    )
                }
            }
        }

        /// The stream that the delegate provides for an upload task without known content.
        func askForStream() async throws -> InputStream? {
            guard let delegate = task.delegate else { return nil }
            let (session, task) = (internals.session, task)
            let stream = try await Race<HandedOver<InputStream?>>.answer { answer in
                session.delegateQueue.addOperation {
                    delegate.urlSession(session, task: task) { answer(HandedOver($0)) }
                }
            }
            return stream.value
        }

        /// Tells the delegate that so much of the request's content was sent.
        func reportSent(_ bytes: Int64, total: Int64, expected: Int64) {
            guard let delegate = internals.eventDelegate else { return }
            let (session, task) = (internals.session, task)
            session.delegateQueue.addOperation {
                delegate.urlSession(
                    session,
                    task: task,
                    didSendBodyData: bytes,
                    totalBytesSent: total,
                    totalBytesExpectedToSend: expected
                )
            }
        }
    }

    /// A value that one thread hands over to another.
    ///
    /// `@unchecked Sendable`: the value is made by one thread, used by it no more, and read once.
    struct HandedOver<Value>: @unchecked Sendable {
        let value: Value
        init(_ value: Value) { self.value = value }
    }
#endif
