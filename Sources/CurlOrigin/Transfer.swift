internal import CCurl
internal import CacheEngine
internal import HTTPCaching

/// One exchange as libcurl sees it: an easy handle, what feeds it and what it feeds.
///
/// Lives on the event thread and never leaves it. libcurl's callbacks get it as an unretained
/// pointer: sound, because the event loop holds the transfer until its handle has been taken out
/// of the multi handle and reset, and callbacks only run inside calls on those two.
final class Transfer {
    let exchange: Exchange
    let request: PreparedRequest
    let upload: UploadPipe?
    let easy: UnsafeMutableRawPointer
    var deadlines: TransferDeadlines
    /// The moment under which the deadline queue knows the transfer.
    var queuedMoment = UInt64.max
    private let clock: EventClock
    private let book: DeadlineBook
    private var parser: HeadParser
    /// The first thing that went wrong on our side; libcurl only knows that a callback said no.
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
        configuration: CurlConfiguration
    ) {
        self.exchange = exchange
        self.request = request
        self.upload = upload
        self.easy = easy
        self.clock = clock
        self.book = book
        deadlines = TransferDeadlines(
            configuration.deadlines,
            headSeconds: request.headTimeoutSeconds,
            now: clock.now
        )
        parser = HeadParser(
            limits: configuration.limits,
            isBodyless: request.method.kind == .head
        )
        errorText[0] = 0
        configure(configuration)
    }

    deinit {
        curl_slist_free_all(lines)
        errorText.deallocate()
    }

    // MARK: - What the loop asks for

    /// The reader has room again.
    func resumeReceiving() {
        deadlines.readerResumed(now: clock.now)
        book.note(self)
        unpause(CURLPAUSE_RECV)
    }

    /// There is content to send again.
    func resumeSending() { unpause(CURLPAUSE_SEND) }

    /// What came of it, once libcurl is done with it.
    func outcome(_ code: CURLcode) -> ExchangeEvent {
        if let failure = failure ?? upload?.failure { return .failure(failure) }
        if code == CURLE_OK {
            if parser.isInBody { return .end }
            return .failure(CacheError(.originFailed, detail: "The answer ended in its head"))
        }
        var text = String(cString: errorText)
        // A connection that died under the request is made anew; that failing is not the same as
        // never having reached the origin.
        if sendCount > 0, code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT {
            text = "Sent, but: " + text
        }
        return .failure(CurlFailure.error(code, text: text, hasHead: parser.isInBody))
    }

    private func unpause(_ direction: Int32) {
        guard pauses & direction != 0 else { return }
        pauses &= ~direction
        // May call back at once, and pause again.
        curl_easy_pause(easy, pauses)
    }

    // MARK: - What libcurl calls

    func receiveHeadLine(_ line: UnsafeRawBufferPointer) -> Int {
        switch parser.consume(line) {
        case .none: break
        case .informational(let head): exchange.deliver(.informational(head))
        case .final(let head):
            deadlines.headArrived(now: clock.now)
            book.note(self)
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

    /// The answer has come before the end of the content, which libcurl may not want any more; as
    /// long as its sending is paused it takes no end of the answer for one.
    private func askForContentAgain() {
        if pauses & CURLPAUSE_SEND != 0 { exchange.resumeUpload() }
    }

    func fillUpload(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        switch upload?.fill(buffer) ?? .end {
        case .bytes(let count):
            deadlines.contentTaken(now: clock.now)
            return count
        case .end: return 0
        case .broken: return Int(CURL_READFUNC_ABORT)
        case .held:
            pauses |= CURLPAUSE_SEND
            return Int(CURL_READFUNC_PAUSE)
        }
    }

    func rewindUpload(to offset: Int) -> Bool {
        offset == 0 && (upload?.rewind() ?? true)
    }

    /// Whether the request may be sent; libcurl sends it again when a kept connection turns out
    /// to be dead, which only an idempotent one survives.
    func maySend() -> Bool {
        sendCount += 1
        guard sendCount > 1, !request.isIdempotent else { return true }
        failure = CacheError(.originFailed, detail: "The connection closed before an answer")
        return false
    }
}

// MARK: - Setting the handle up

extension Transfer {
    private func configure(_ configuration: CurlConfiguration) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        set(CURLOPT_PRIVATE, context)
        set(CURLOPT_ERRORBUFFER, errorText)
        set(CURLOPT_NOSIGNAL, 1)
        ccurl_allow_http_only(easy)
        configureRequest(configuration)
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

    private func configureRequest(_ configuration: CurlConfiguration) {
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
        // The bytes of the content are the origin's; the transfer coding is undone all the same.
        set(CURLOPT_HTTP_CONTENT_DECODING, 0)
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(CURLOPT_HTTP09_ALLOWED, 0)
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        // A kept connection may be dead already, and then libcurl would send the request twice.
        if !request.isIdempotent { set(CURLOPT_FRESH_CONNECT, 1) }
    }

    private func configureConnection(_ configuration: CurlConfiguration) {
        switch configuration.protocolVersion {
        case .automatic:
            set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
            // One connection serves many requests where it turns out to be HTTP/2.
            if request.isSecure { set(CURLOPT_PIPEWAIT, 1) }
        case .http1: set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        case .http2PriorKnowledge:
            set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE))
            set(CURLOPT_PIPEWAIT, 1)
        }
        switch configuration.verification {
        case .systemAuthorities: break
        case .authorities(let file): set(CURLOPT_CAINFO, file)
        case .none:
            set(CURLOPT_SSL_VERIFYPEER, 0)
            set(CURLOPT_SSL_VERIFYHOST, 0)
        }
        // Set in either case: unset, libcurl asks the environment.
        set(CURLOPT_PROXY, configuration.proxy ?? "")
        let connect = configuration.deadlines.connectSeconds ?? 1e6
        set(CURLOPT_CONNECTTIMEOUT_MS, Int(max(0.001, min(connect, 1e6)) * 1000))
        set(CURLOPT_TCP_KEEPALIVE, 1)
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

/// The C functions libcurl is given; each finds its transfer in the context pointer.
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
