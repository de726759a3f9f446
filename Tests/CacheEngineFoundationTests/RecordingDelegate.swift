import Foundation
import FoundationNetworking
import Synchronization

/// A session delegate that records its events, and decides as a test says.
final class RecordingDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate,
    Sendable
{
    enum Event: Equatable, Sendable {
        case response(Int)
        case data(String)
        case file(String)
        case written(Int64, of: Int64)
        case sent(Int64, of: Int64)
        case redirect(Int, to: String)
        case challenge(String)
        case proposal(String)
        case end(Int?)
    }

    let events: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation
    private let record = Mutex<[Event]>([])
    /// Decides about a redirect.
    let redirect: @Sendable (URLRequest) -> URLRequest?
    /// Decides about storing; not calling the handler is a decision too.
    let store: @Sendable (CachedURLResponse, @Sendable (CachedURLResponse?) -> Void) -> Void
    let credential: URLCredential?
    let stream: @Sendable () -> InputStream?

    init(
        redirect: @escaping @Sendable (URLRequest) -> URLRequest? = { $0 },
        store:
            @escaping @Sendable (CachedURLResponse, @Sendable (CachedURLResponse?) -> Void) -> Void =
            { $1($0) },
        credential: URLCredential? = nil,
        stream: @escaping @Sendable () -> InputStream? = { nil }
    ) {
        self.redirect = redirect
        self.store = store
        self.credential = credential
        self.stream = stream
        (events, continuation) = AsyncStream<Event>.makeStream()
    }

    /// The events so far.
    var seen: [Event] { record.withLock { $0 } }

    /// Waits for the end of a task, and returns all events.
    func eventsToTheEnd() async -> [Event] {
        for await event in events {
            if case .end = event { break }
        }
        return seen
    }

    private func note(_ event: Event) {
        record.withLock { $0.append(event) }
        continuation.yield(event)
    }

    // MARK: - Data

    func urlSession(
        _ session: URLSession,
        dataTask: URLSessionDataTask,
        didReceive response: URLResponse,
        completionHandler: @Sendable @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        note(.response((response as? HTTPURLResponse)?.statusCode ?? 0))
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note(.data(String(decoding: data, as: UTF8.self)))
    }

    func urlSession(
        _ session: URLSession,
        dataTask: URLSessionDataTask,
        willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @Sendable @escaping (CachedURLResponse?) -> Void
    ) {
        note(.proposal(String(decoding: proposedResponse.data, as: UTF8.self)))
        store(proposedResponse, completionHandler)
    }

    // MARK: - Downloads

    func urlSession(
        _ session: URLSession,
        downloadTask: URLSessionDownloadTask,
        didFinishDownloadingTo location: URL
    ) {
        note(.file((try? String(contentsOf: location, encoding: .utf8)) ?? "missing"))
        try? FileManager.default.removeItem(at: location)
    }

    func urlSession(
        _ session: URLSession,
        downloadTask: URLSessionDownloadTask,
        didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) {
        note(.written(totalBytesWritten, of: totalBytesExpectedToWrite))
    }

    // MARK: - Tasks

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @Sendable @escaping (URLRequest?) -> Void
    ) {
        note(.redirect(response.statusCode, to: request.url?.path ?? ""))
        completionHandler(redirect(request))
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @Sendable @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        note(.challenge(challenge.protectionSpace.realm ?? ""))
        if let credential {
            completionHandler(.useCredential, credential)
        } else {
            completionHandler(.performDefaultHandling, nil)
        }
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        needNewBodyStream completionHandler: @Sendable @escaping (InputStream?) -> Void
    ) {
        completionHandler(stream())
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        note(.sent(totalBytesSent, of: totalBytesExpectedToSend))
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didCompleteWithError error: (any Error)?
    ) {
        note(.end((error as? URLError)?.code.rawValue ?? (error.map { ($0 as NSError).code })))
    }
}
