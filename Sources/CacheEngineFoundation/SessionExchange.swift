internal import CacheEngine
internal import Foundation
internal import Platform
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// One exchange of a `URLSessionOrigin`, which keeps the delegate's events until the reader takes
/// them.
final class SessionExchange: BodySource {
    struct Head: Sendable {
        var status: Int
        var fields: HeaderFields
        var contentBytes: Int?
        var hasContent: Bool
    }

    private enum Event: Sendable {
        case head(Head)
        case chunk(ByteChunk)
        case end
        case failure(any Error)
    }

    private struct State: Sendable {
        var events = FIFO<Event>()
        var outcome: Event?
        var waitingBytes = 0
        var receivedBytes = 0
        var head: Head?
        /// Whether content was sent since the limit on the head was last looked at.
        var hasSentContent = false
        var waiter: UnsafeContinuation<Event, Never>?
        var cancelTask: (@Sendable () -> Void)?
    }

    private let content: BodyStream?
    private let windowBytesMax: Int
    private let cancellations: DispatchQueue
    private let state = Mutex(State())

    /// Creates an exchange that sends `content`, and whose task is cancelled on the queue
    /// `cancellations`.
    ///
    /// `cancel()` of URLSession blocks until it has processed all data that a fast server sends,
    /// which may never end.
    init(content: BodyStream?, windowBytesMax: Int, cancellations: DispatchQueue) {
        self.content = content
        self.windowBytesMax = windowBytesMax
        self.cancellations = cancellations
    }

    // MARK: - The reader's side

    func start(_ task: URLSessionDataTask) {
        let isOpen = state.withLock { state in
            state.cancelTask = { [cancellations] in cancellations.async { task.cancel() } }
            return state.outcome == nil
        }
        if isOpen { task.resume() } else { task.cancel() }
    }

    /// Waits for the head, for at most `limit` after the request.
    ///
    /// Content that is being sent extends the wait: it ends between one and two times `limit` after
    /// the last piece.
    func head(within limit: Duration?) async throws -> Head {
        let timer = limit.map(startTimer)
        defer { timer?.cancel() }
        switch await nextEvent() {
        case .head(let head): return head
        case .failure(let error): throw error
        case .chunk, .end:
            cancel()
            throw CacheError(.originMisbehaved, detail: "The origin sent a body without a head")
        }
    }

    func next() async throws -> ByteChunk? {
        switch await nextEvent() {
        case .chunk(let chunk): return chunk
        case .failure(let error): throw error
        case .end, .head: return nil
        }
    }

    func cancel() { abandon(CancellationError()) }

    private func startTimer(_ limit: Duration) -> any DispatchSourceTimer {
        let seconds = min(max(limit.seconds, Self.limitSecondsMin), Self.limitSecondsMax)
        let timer = DispatchSource.makeTimerSource(queue: cancellations)
        timer.schedule(deadline: .now() + seconds, repeating: seconds)
        timer.setEventHandler { [weak self] in self?.endIfSilent() }
        timer.resume()
        return timer
    }

    private func endIfSilent() {
        let isSilent = state.withLock { state in
            defer { state.hasSentContent = false }
            return state.head == nil && !state.hasSentContent
        }
        guard isSilent else { return }
        abandon(
            CacheError(
                .originTimedOut,
                detail: "The origin sent no head within the request's time limit"
            )
        )
    }

    /// A timer without an interval would fire without a pause.
    private static let limitSecondsMin = 0.001
    /// The longest time limit, eleven days; Foundation on Linux traps for one that is endless.
    static let limitSecondsMax = 1e6

    private func nextEvent() async -> Event {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let event = state.withLock { state -> Event? in
                    if state.waiter != nil {
                        return .failure(
                            CacheError(.originFailed, detail: "Two tasks read one body at once")
                        )
                    }
                    let event = Self.take(&state)
                    if event == nil { state.waiter = continuation }
                    return event
                }
                if let event { continuation.resume(returning: event) }
            }
        } onCancel: {
            abandon(CancellationError())
        }
    }

    private static func take(_ state: inout State) -> Event? {
        guard let event = state.events.popFirst() else { return state.outcome }
        if case .chunk(let chunk) = event { state.waitingBytes -= charge(chunk.count) }
        return event
    }

    /// The bytes that a waiting chunk counts; an origin may send a body in pieces of one byte.
    private static func charge(_ count: Int) -> Int { count + ByteChunk.overheadBytes }

    private func abandon(_ error: any Error) {
        signal { state in
            state.events.removeAll()
            state.waitingBytes = 0
            if case .failure? = state.outcome { return }
            state.outcome = .failure(error)
        }
        state.withLock { $0.cancelTask.take() }?()
    }

    // MARK: - The delegate's side

    func receive(_ response: URLResponse) {
        guard let response = response as? HTTPURLResponse else {
            return abandon(
                CacheError(.originMisbehaved, detail: "The response is not an HTTP response")
            )
        }
        if response.statusCode == 206, let coding = Self.coding(of: HeaderFields(response)) {
            return abandon(
                CacheError(
                    .originMisbehaved,
                    detail: "The part has the coding `\(PlainText.excerpt(coding))`, which "
                        + "URLSession decodes; use CurlOrigin for parts of coded content"
                )
            )
        }
        let head = Self.head(response)
        signal { state in
            state.head = head
            state.events.append(.head(head))
        }
    }

    /// Takes the head of a redirect without `Location`, which URLSession on Linux does not report.
    ///
    /// URLSession drops the body of such a response, so it arrives as an empty one.
    func receiveIfMissing(_ response: URLResponse?) {
        guard let response = response as? HTTPURLResponse else { return }
        var head = Self.head(response)
        head.fields.remove("Content-Length")
        head.contentBytes = nil
        head.hasContent = false
        signal { state in
            guard state.head == nil, state.outcome == nil else { return }
            state.head = head
            state.events.append(.head(head))
        }
    }

    func contentMoved() {
        state.withLock { $0.hasSentContent = true }
        content?.noteMovement()
    }

    func receive(_ data: Data) {
        let (isOpen, isTooMuch) = state.withLock { state in
            let waitingBytes = state.waitingBytes + Self.charge(data.count)
            return (state.outcome == nil, waitingBytes > windowBytesMax)
        }
        // A cancelled task may deliver data for a while.
        guard isOpen else { return }
        if isTooMuch {
            return abandon(
                CacheError(
                    .readerTooSlow,
                    detail: "More than \(windowBytesMax) bytes of the body wait for the reader; "
                        + "read faster, or raise maximumWindow"
                )
            )
        }
        let chunk = ByteChunk(data)
        signal { state in
            state.events.append(.chunk(chunk))
            state.waitingBytes += Self.charge(chunk.count)
            state.receivedBytes += chunk.count
        }
    }

    func finish(_ error: (any Error)?) {
        signal { state in
            guard state.outcome == nil else { return }
            if let error {
                state.outcome = .failure(Self.failure(error, hasHead: state.head != nil))
            } else if let head = state.head, head.hasContent, let length = head.contentBytes,
                state.receivedBytes < length
            {
                state.outcome = .failure(
                    CacheError(
                        .bodyTruncated,
                        detail: "The body ended after \(state.receivedBytes) of \(length) bytes"
                    )
                )
            } else {
                state.outcome = .end
            }
        }
        state.withLock { $0.cancelTask = nil }
    }

    private func signal(_ change: (inout State) -> Void) {
        let resumed = state.withLock { state -> (UnsafeContinuation<Event, Never>, Event)? in
            change(&state)
            guard let waiter = state.waiter, let event = Self.take(&state) else { return nil }
            state.waiter = nil
            return (waiter, event)
        }
        if let (waiter, event) = resumed { waiter.resume(returning: event) }
    }

    private static func head(_ response: HTTPURLResponse) -> Head {
        let status = response.statusCode
        var fields = HeaderFields(response)
        if coding(of: fields) != nil {
            // URLSession has already decoded the content.
            fields.remove("Content-Encoding")
            fields.remove("Content-Length")
        }
        if fields.contains("Transfer-Encoding") {
            // The coding overrides the length (RFC 9112 §6.3).
            fields.remove("Transfer-Encoding")
            fields.remove("Content-Length")
        }
        return Head(
            status: status,
            fields: fields,
            contentBytes: fields["Content-Length"].flatMap { Int($0) },
            hasContent: status != 204 && status != 304
        )
    }

    /// The coding of the content, if URLSession decodes it.
    static func coding(of fields: HeaderFields) -> String? {
        fields["Content-Encoding"].flatMap { $0.lowercased() == "identity" ? nil : $0 }
    }

    /// The error for the end of a task, whose head may have arrived.
    static func failure(_ error: any Error, hasHead: Bool) -> any Error {
        guard let error = error as? URLError else {
            return CacheError(.originFailed, detail: String(describing: error))
        }
        let text = PlainText.escaped(error.localizedDescription)
        let remedy = remedy(error.code).map { "; \($0)" } ?? ""
        let detail = "URLSession: \(text)\(remedy) (code \(error.code.rawValue))"
        switch error.code {
        case .cancelled: return CancellationError()
        case .timedOut: return CacheError(.originTimedOut, detail: detail)
        // URLSession on Linux gives this code to a connection that ends before a response.
        case .badServerResponse:
            return CacheError(hasHead ? .bodyTruncated : .originFailed, detail: detail)
        case .cannotDecodeRawData, .cannotDecodeContentData,
            .cannotParseResponse:
            return CacheError(.originMisbehaved, detail: detail)
        case .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost, .notConnectedToInternet,
            .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateUntrusted,
            .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid:
            return CacheError(hasHead ? .bodyTruncated : .originUnreachable, detail: detail)
        case .badURL, .unsupportedURL: return CacheError(.requestInvalid, detail: detail)
        default: return CacheError(hasHead ? .bodyTruncated : .originFailed, detail: detail)
        }
    }

    /// The remedy for a failure of TLS.
    ///
    /// URLSession on Linux has no codes for these: its text has the reason that libcurl gives.
    private static func remedy(_ code: URLError.Code) -> String? {
        switch code {
        case .secureConnectionFailed:
            "no TLS connection could be made: look at the server's versions and ciphers of TLS"
        case .serverCertificateHasBadDate:
            "the server's certificate has expired: renew it, or set this machine's clock"
        case .serverCertificateNotYetValid:
            "the server's certificate is not valid yet: set this machine's clock"
        case .serverCertificateUntrusted:
            "the server's certificate is not trusted for this host: look at its names and issuer"
        case .serverCertificateHasUnknownRoot:
            "the server's certificate has an unknown root: let this machine trust it"
        case .clientCertificateRejected, .clientCertificateRequired:
            "the server wants another client certificate than the session has"
        default: nil
        }
    }

    /// The code of URLSession behind an error, if it says more than the error's own code.
    static func originalCode(of error: CacheError) -> URLError.Code? {
        guard error.detail.hasPrefix("URLSession: "),
            let mark = error.detail.range(of: "(code ", options: .backwards),
            let number = Int(error.detail[mark.upperBound...].dropLast())
        else { return nil }
        return tellingCodes.first { $0.rawValue == number }
    }

    private static let tellingCodes: Set<URLError.Code> = [
        .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost, .notConnectedToInternet,
        .unsupportedURL, .secureConnectionFailed, .serverCertificateHasBadDate,
        .serverCertificateUntrusted, .serverCertificateHasUnknownRoot,
        .serverCertificateNotYetValid, .clientCertificateRejected, .clientCertificateRequired,
    ]
}
