internal import CCurl
internal import CacheEngine
internal import HTTPCaching
import Platform

/// One exchange as libcurl sees it: an easy handle, its upload source and its receiver.
///
/// Only the event thread uses it. libcurl's callbacks get it as an unretained pointer. This is
/// sound: the event loop holds the transfer until its handle has been removed from the multi handle
/// and reset, and callbacks run only inside calls on those two handles.
final class Transfer {
    let exchange: Exchange
    let request: PreparedRequest
    let upload: UploadPipe?
    let easy: UnsafeMutableRawPointer
    var deadlines: TransferDeadlines
    /// Whether the transfer waits or has begun.
    var place = StartLine.Place.uncounted
    /// The times under which the transfer is in the deadline queue.
    var queued = QueuedMoments()
    /// The socket of its connection, as far as libcurl has named it.
    private var socket: Int32?
    /// Whether the origin takes the bytes that the system holds, since libcurl took content.
    private var progress = SendProgress()
    /// The time of the next look at it; `UInt64.max` if the system holds nothing.
    private(set) var lookMoment = UInt64.max
    private let clock: EventClock
    private let book: DeadlineBook
    private let startLine: StartLine
    private var parser: HeadParser
    /// The first error on our side; libcurl only knows that a callback failed.
    private var failure: (any Error)?
    private var lines: UnsafeMutablePointer<curl_slist>?
    private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    private var pauses: Int32 = 0
    private var sendCount = 0

    init(
        _ exchange: Exchange,
        _ request: PreparedRequest,
        _ upload: UploadPipe?,
        easy: UnsafeMutableRawPointer,
        clock: EventClock,
        book: DeadlineBook,
        startLine: StartLine,
        configuration: CurlConfiguration
    ) {
        self.exchange = exchange
        self.request = request
        self.upload = upload
        self.easy = easy
        self.clock = clock
        self.book = book
        self.startLine = startLine
        deadlines = TransferDeadlines(
            TransferDeadlines.Limits(configuration.deadlines),
            head: request.headTimeout,
            now: clock.now
        )
        parser = HeadParser(
            limits: configuration.limits,
            isHead: request.method.kind == .head
        )
        errorText[0] = 0
        configure(configuration)
    }

    deinit {
        curl_slist_free_all(lines)
        errorText.deallocate()
    }

    // MARK: - Called by the event loop

    /// Continues receiving, because the reader has room again.
    func resumeReceiving() {
        deadlines.readerResumed(now: clock.now)
        book.note(self)
        unpause(CURLPAUSE_RECV)
    }

    /// Continues sending, because content is available again.
    func resumeSending() { unpause(CURLPAUSE_SEND) }

    /// Returns the outcome of the transfer after libcurl has ended it.
    func outcome(_ code: CURLcode) -> ExchangeEvent {
        if let failure = failure ?? upload?.failure { return .failure(failure) }
        if code == CURLE_OK {
            if parser.isInBody || request.isConnectOnly { return .end }
            return .failure(
                CacheError(.originFailed, detail: "The response ended before its head was complete")
            )
        }
        let progress: CurlFailure.Progress =
            parser.isInBody ? .arriving : sendCount > 0 ? .sent : .unsent
        let systemCode = Int32(truncatingIfNeeded: ccurl_system_error(easy))
        if let lack = CurlFailure.lack(code, progress, systemCode: systemCode) {
            return .failure(lack)
        }
        // A failure inside TLS leaves no error of the system, so nothing is known of one there.
        let isConnectionSound = !request.isSecure && systemCode == 0
        let error = CurlFailure.error(
            code,
            text: String(cString: errorText),
            progress,
            isConnectionSound: isConnectionSound
        )
        return .failure(error)
    }

    /// Returns the error for a transfer that has exceeded a limit.
    func failure(_ kind: TransferDeadlines.Kind) -> ExchangeEvent {
        let isSourceSilent = upload?.isSourceSilent ?? false
        return .failure(CurlFailure.error(kind, isSourceSilent: isSourceSilent))
    }

    /// libcurl watches a socket for the transfer, or does so no more.
    func note(_ socket: Int32, isWatched: Bool) {
        if isWatched {
            self.socket = socket
        } else if self.socket == socket {
            self.socket = nil
        }
    }

    /// Returns the limit that the transfer has exceeded now.
    func expired() -> TransferDeadlines.Kind? {
        if clock.now >= lookMoment { noteTakenContent() }
        return deadlines.expired(at: clock.now)
    }

    /// Lets the limit that runs begin anew if the origin has taken content that the system held.
    ///
    /// With HTTP/2 the bytes may belong to another transfer of the connection, and the origin tells
    /// of each what it has taken.
    private func noteTakenContent() {
        lookMoment = .max
        guard let upload, let socket, !startLine.isMultiplexed(request.connectionURL) else {
            return
        }
        let hasAdvanced = progress.hasAdvanced(socket)
        if progress.holdsBytes { lookMoment = clock.now + Self.lookNanoseconds }
        guard hasAdvanced, !upload.isSourceSilent, !Mutant.blamesServersThatReadSlowly.isOn else {
            return
        }
        deadlines.originTookContent(now: clock.now)
        request.content.noteMovement()
    }

    private func unpause(_ direction: Int32) {
        guard pauses & direction != 0 else { return }
        pauses &= ~direction
        // This may run callbacks at once, which may pause again.
        curl_easy_pause(easy, pauses)
    }

    // MARK: - Called by libcurl

    func receiveHeadLine(_ line: UnsafeRawBufferPointer) -> Int {
        switch parser.consume(line) {
        case .none: break
        case .informational(let head): exchange.deliver(.informational(head))
        case .final(let head):
            deadlines.headArrived(now: clock.now)
            book.note(self)
            startLine.learn(isMultiplexed: parser.isMultiplexed, of: request.connectionURL)
            if head.isFramedTwice { set(CURLOPT_FORBID_REUSE, 1) }
            exchange.deliver(.head(head))
            askForContentAgain()
        case .refused(let error):
            failure = failure ?? error
            return 0
        }
        return line.count
    }

    func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        deadlines.progressed(now: clock.now)
        switch exchange.offer(bytes) {
        case .accepted:
            askForContentAgain()
            return bytes.count
        case .refused: return 0
        case .held:
            deadlines.readerHolds()
            pauses |= CURLPAUSE_RECV
            return Int(CURL_WRITEFUNC_PAUSE)
        }
    }

    /// Makes libcurl ask for content again, because the response arrived before the content ended.
    ///
    /// libcurl may not want the rest of the content, but while sending is paused it does not treat
    /// the end of the response as the end of the transfer.
    private func askForContentAgain() {
        if pauses & CURLPAUSE_SEND != 0 { exchange.resumeUpload() }
    }

    func fillUpload(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        if let socket {
            progress.begin(socket)
            lookMoment = clock.now + Self.lookNanoseconds
        }
        switch upload?.fill(buffer) ?? .end {
        case .bytes(let count):
            deadlines.contentTaken(now: clock.now)
            request.content.noteMovement()
            if upload?.isDrained ?? true { deadlines.contentEnded(now: clock.now) }
            book.note(self)
            return count
        case .end:
            deadlines.contentEnded(now: clock.now)
            book.note(self)
            return 0
        case .broken: return Int(CURL_READFUNC_ABORT)
        case .held:
            pauses |= CURLPAUSE_SEND
            return Int(CURL_READFUNC_PAUSE)
        }
    }

    func rewindUpload(to offset: Int) -> Bool {
        offset == 0 && (upload?.rewind() ?? true)
    }

    /// Whether the request may be sent, or sent again.
    ///
    /// libcurl repeats a request if a kept connection turns out to be dead. Only an idempotent
    /// request may be repeated, and only once.
    func maySend() -> Bool {
        sendCount += 1
        guard sendCount == 1 || sendCount <= Self.sendCountMax && request.isIdempotent else {
            failure = CacheError(
                .originFailed,
                detail: "The origin closed the connection before its response; "
                    + "the request is not sent again"
            )
            return false
        }
        // Another kept connection may be dead as well, or may fail because of the same request.
        set(CURLOPT_FRESH_CONNECT, 1)
        deadlines.sent(hasContent: upload.map { $0.count != 0 } ?? false, now: clock.now)
        book.note(self)
        return true
    }

    /// The time between two looks at the bytes that the system holds.
    private static let lookNanoseconds: UInt64 = 250_000_000
    /// The maximum number of times that one request is sent.
    private static let sendCountMax = 2
    /// The age at which a connection takes no other request: its host may have moved.
    private static let connectionSecondsMax = 600
}

// MARK: - Setup of the handle

extension Transfer {
    private func configure(_ configuration: CurlConfiguration) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        set(CURLOPT_PRIVATE, context)
        set(CURLOPT_ERRORBUFFER, errorText)
        set(CURLOPT_NOSIGNAL, 1)
        ccurl_allow_http_only(easy)
        configureRequest()
        configureConnection(configuration)
        set(CURLOPT_HEADERDATA, context)
        ccurl_set_data_callback(easy, CURLOPT_HEADERFUNCTION, Callback.head)
        set(CURLOPT_WRITEDATA, context)
        ccurl_set_data_callback(easy, CURLOPT_WRITEFUNCTION, Callback.body)
        set(CURLOPT_PREREQDATA, context)
        ccurl_set_request_callback(easy, Callback.request)
        guard let upload else { return }
        set(CURLOPT_UPLOAD, 1)
        ccurl_set_offset(easy, CURLOPT_INFILESIZE_LARGE, curl_off_t(upload.count ?? -1))
        set(CURLOPT_READDATA, context)
        ccurl_set_data_callback(easy, CURLOPT_READFUNCTION, Callback.upload)
        set(CURLOPT_SEEKDATA, context)
        ccurl_set_seek_callback(easy, Callback.seek)
    }

    private func configureRequest() {
        set(CURLOPT_URL, request.connectionURL)
        set(CURLOPT_PATH_AS_IS, 1)
        set(CURLOPT_REQUEST_TARGET, request.requestTarget)
        switch request.method.kind {
        case .get where upload == nil: set(CURLOPT_HTTPGET, 1)
        case .head: set(CURLOPT_NOBODY, 1)
        default: set(CURLOPT_CUSTOMREQUEST, request.method.name)
        }
        for line in request.lines {
            line.withUnsafeBytes { bytes in
                lines = curl_slist_append(
                    lines,
                    bytes.assumingMemoryBound(to: CChar.self).baseAddress
                )
            }
        }
        ccurl_set_list(easy, lines)
        // The content is not decoded; libcurl still undoes the transfer coding.
        set(CURLOPT_HTTP_CONTENT_DECODING, 0)
        set(CURLOPT_FOLLOWLOCATION, Mutant.followsRedirects.isOn ? 1 : 0)
        set(CURLOPT_HTTP09_ALLOWED, 0)
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        if !mayBeSentTwice || request.isConnectOnly { set(CURLOPT_FRESH_CONNECT, 1) }
        if request.isConnectOnly { set(CURLOPT_CONNECT_ONLY, 1) }
        if request.authenticatesConnection, !Mutant.reusesAuthenticatedConnections.isOn {
            set(CURLOPT_FORBID_REUSE, 1)
        }
    }

    /// Whether libcurl can repeat the request if a kept connection turns out to be dead.
    private var mayBeSentTwice: Bool {
        let isRepeatable = upload?.isRepeatable ?? true
        return request.isIdempotent && (isRepeatable || Mutant.keepsForStreams.isOn)
    }

    /// Without CURLOPT_PIPEWAIT: while an origin does not respond to the first connection, all other
    /// transfers would wait for it, then for the next one, and so on.
    private func configureConnection(_ configuration: CurlConfiguration) {
        switch configuration.protocolVersion {
        case .automatic: set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
        case .http1: set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        case .http2PriorKnowledge:
            set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE))
        }
        switch configuration.verification {
        case .systemAuthorities: break
        case .authorities(let file):
            set(CURLOPT_CAINFO, file)
            // Without this, the authorities of the system's directory are accepted too.
            ccurl_set_string(easy, CURLOPT_CAPATH, nil)
        case .none:
            set(CURLOPT_SSL_VERIFYPEER, 0)
            set(CURLOPT_SSL_VERIFYHOST, 0)
        }
        // Always set: if an option is unset, libcurl reads environment variables.
        set(CURLOPT_PROXY, configuration.proxy ?? "")
        set(CURLOPT_NOPROXY, "")
        let connect = configuration.deadlines.connect?.seconds ?? 1e6
        set(CURLOPT_CONNECTTIMEOUT_MS, Int(max(0.001, min(connect, 1e6)) * 1000))
        set(CURLOPT_TCP_KEEPALIVE, 1)
        set(CURLOPT_MAXLIFETIME_CONN, Self.connectionSecondsMax)
        ccurl_end_without_resolver(easy)
    }

    private func set(_ option: CURLoption, _ value: Int) { ccurl_set_long(easy, option, value) }
    private func set(_ option: CURLoption, _ value: String) {
        ccurl_set_string(easy, option, value)
    }
    private func set(_ option: CURLoption, _ value: UnsafeMutableRawPointer) {
        ccurl_set_pointer(easy, option, value)
    }
}

/// The C functions passed to libcurl; each finds its transfer by the context pointer.
private enum Callback {
    static let head: ccurl_data_callback = { bytes, size, count, context in
        guard let transfer = transfer(context) else { return 0 }
        return transfer.receiveHeadLine(UnsafeRawBufferPointer(start: bytes, count: size * count))
    }

    static let body: ccurl_data_callback = { bytes, size, count, context in
        guard let transfer = transfer(context) else { return 0 }
        return transfer.receiveBody(UnsafeRawBufferPointer(start: bytes, count: size * count))
    }

    static let upload: ccurl_data_callback = { bytes, size, count, context in
        guard let transfer = transfer(context) else { return 0 }
        return transfer.fillUpload(
            UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
        )
    }

    static let seek: ccurl_seek_callback = { context, offset, origin in
        guard let transfer = transfer(context), origin == SEEK_SET else {
            return Int32(CURL_SEEKFUNC_FAIL)
        }
        return transfer.rewindUpload(to: Int(offset))
            ? Int32(CURL_SEEKFUNC_OK) : Int32(CURL_SEEKFUNC_FAIL)
    }

    static let request: ccurl_request_callback = { context, _, _, _, _ in
        guard let transfer = transfer(context), transfer.maySend() else {
            return Int32(CURL_PREREQFUNC_ABORT)
        }
        return Int32(CURL_PREREQFUNC_OK)
    }

    private static func transfer(_ context: UnsafeMutableRawPointer?) -> Transfer? {
        context.map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
    }
}
