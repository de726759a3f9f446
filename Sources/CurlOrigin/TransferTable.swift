internal import CCurl
internal import CacheEngine
import Platform

/// The transfers, and the loop of the event thread that moves them.
///
/// It is created by the thread that starts the event thread, and then used only by the event
/// thread.
///
/// Invariants:
/// 1. A transfer is in `transfers` until it ends. Its handle is in the multi handle from the moment
///    at which it begins: `startLine` may let it wait.
final class TransferTable {
    private let loop: EventLoop
    private let poller: SocketPoller
    private let multi: UnsafeMutableRawPointer
    private let clock = EventClock()
    private var transfers: [TransferID: Transfer] = [:]
    private let book = DeadlineBook()
    private let startLine: StartLine
    /// The time at which libcurl must be called even if no socket is ready.
    private var curlMoment = UInt64.max
    private var idleHandles: [UnsafeMutableRawPointer] = []
    private var isRetiring = false

    private static let idleHandlesMax = 64
    /// The maximum number of idle connections, far above what a process can have.
    private static let idleMax = 1 << 24

    init?(_ loop: EventLoop, _ poller: SocketPoller) {
        guard let multi = curl_multi_init() else { return nil }
        self.loop = loop
        self.poller = poller
        self.multi = multi
        startLine = StartLine(loop.configuration.connections)
        let context = Unmanaged.passUnretained(self).toOpaque()
        ccurl_multi_set_socket_callback(multi, Self.onSocket, context)
        ccurl_multi_set_timer_callback(multi, Self.onTimer, context)
        let connections = loop.configuration.connections
        ccurl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, connections.maximumPerHost)
        ccurl_multi_set_long(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, connections.maximumTotal)
        keepIdleConnections()
    }

    /// Sets the number of connections to keep.
    ///
    /// libcurl counts connections in use among those it may keep. Without this, many connections in
    /// use would leave no room for idle ones.
    private func keepIdleConnections() {
        let idleMax = max(1, min(loop.configuration.connections.maximumIdle, Self.idleMax))
        let begunCount = transfers.count - startLine.waiterCount
        ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, idleMax + begunCount)
    }

    /// Runs the event loop until the origin is retired and the last transfer has ended.
    func run() {
        while !(isRetiring && transfers.isEmpty && loop.closeIfIdle()) { turn() }
        tearDown()
    }

    func tearDown() {
        for easy in idleHandles { curl_easy_cleanup(easy) }
        idleHandles = []
        curl_multi_cleanup(multi)
        poller.close()
    }

    private func turn() {
        clock.advance()
        poller.wait(timeoutMilliseconds: waitMilliseconds()) { ready in
            var events: Int32 = 0
            if ready.isReadable { events |= CURL_CSELECT_IN }
            if ready.isWritable { events |= CURL_CSELECT_OUT }
            if ready.isBroken { events |= CURL_CSELECT_ERR }
            clock.advance()
            act(on: ready.socket, events)
        }
        clock.advance()
        for command in loop.takeCommands() { perform(command) }
        if clock.now >= curlMoment {
            curlMoment = .max
            act(on: CURL_SOCKET_TIMEOUT, 0)
        }
        endFinished()
        endExpired()
        beginWaiting()
    }

    private func waitMilliseconds() -> Int32 {
        let moment = min(curlMoment, book.next)
        guard moment != .max else { return -1 }
        guard moment > clock.now else { return 0 }
        // Rounded up, because a wait that ends early would only be repeated.
        return Int32(min((moment - clock.now + 999_999) / 1_000_000, 60_000))
    }

    private func act(on socket: Int32, _ events: Int32) {
        var running: Int32 = 0
        curl_multi_socket_action(multi, socket, events, &running)
    }

    // MARK: - Commands

    private func perform(_ command: LoopCommand) {
        switch command {
        case .start(let request, let upload, let exchange): start(request, upload, exchange)
        case .resume(let id):
            transfers[id]?.resumeReceiving()
        case .resumeUpload(let id): transfers[id]?.resumeSending()
        case .cancel(let id):
            guard let transfer = transfers[id] else { return }
            end(transfer, .failure(CancellationError()))
        case .retire: isRetiring = true
        }
    }

    private func start(_ request: PreparedRequest, _ upload: UploadPipe?, _ exchange: Exchange) {
        guard let easy = idleHandles.popLast() ?? curl_easy_init() else {
            upload?.close()
            let error = CacheError(.originFailed, detail: "libcurl could not create an easy handle")
            exchange.finish(.failure(error))
            return
        }
        let transfer = Transfer(
            exchange,
            request,
            upload,
            easy: easy,
            clock: clock,
            book: book,
            startLine: startLine,
            configuration: loop.configuration
        )
        transfers[exchange.id] = transfer
        transfer.place = startLine.enter(exchange.id, for: request.connectionURL)
        book.note(transfer)
        if transfer.place.hasBegun { begin(transfer) }
    }

    private func beginWaiting() {
        while let next = startLine.next() {
            guard let transfer = transfers[next.transfer] else { continue }
            transfer.place = next.place
            begin(transfer)
        }
    }

    private func begin(_ transfer: Transfer) {
        keepIdleConnections()
        guard curl_multi_add_handle(multi, transfer.easy) == CURLM_OK else {
            let error = CacheError(.originFailed, detail: "libcurl could not begin the transfer")
            return end(transfer, .failure(error))
        }
    }

    // MARK: - Ends

    private func endFinished() {
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            let code = ccurl_message_result(message)
            guard let easy = ccurl_message_transfer(message), let transfer = Self.transfer(of: easy)
            else { continue }
            end(transfer, transfer.outcome(code))
        }
    }

    private func endExpired() {
        for due in book.takeDue(now: clock.now) {
            guard let transfer = transfers[due.transfer], transfer.queued.remove(due.moment)
            else { continue }
            if let kind = transfer.expired() {
                end(transfer, transfer.failure(kind))
            } else {
                book.note(transfer)
            }
        }
    }

    /// Ends a transfer; must not be called in libcurl's callbacks, where handles cannot be removed.
    private func end(_ transfer: Transfer, _ outcome: ExchangeEvent) {
        if transfer.place.hasBegun { curl_multi_remove_handle(multi, transfer.easy) }
        startLine.leave(transfer.place, for: transfer.request.connectionURL)
        transfers[transfer.exchange.id] = nil
        keepIdleConnections()
        if idleHandles.count < Self.idleHandlesMax {
            curl_easy_reset(transfer.easy)
            idleHandles.append(transfer.easy)
        } else {
            curl_easy_cleanup(transfer.easy)
        }
        transfer.upload?.close()
        transfer.exchange.finish(outcome)
    }

    // MARK: - Callbacks

    // The callbacks get an unretained pointer to the table. This is sound: the multi handle is
    // cleaned up by `tearDown`, a method of the table.

    private static let onSocket: curl_socket_callback = { easy, socket, what, context, _ in
        guard let table = table(context) else { return 0 }
        if let easy { transfer(of: easy)?.note(socket, isWatched: what != CURL_POLL_REMOVE) }
        switch what {
        case CURL_POLL_IN: table.poller.watch(socket, for: .readable)
        case CURL_POLL_OUT: table.poller.watch(socket, for: .writable)
        case CURL_POLL_INOUT: table.poller.watch(socket, for: [.readable, .writable])
        default: table.poller.watch(socket, for: [])
        }
        return 0
    }

    private static let onTimer: curl_multi_timer_callback = { _, milliseconds, context in
        guard let table = table(context) else { return 0 }
        table.curlMoment =
            milliseconds < 0 ? .max : table.clock.now &+ UInt64(milliseconds) * 1_000_000
        return 0
    }

    /// The transfer of a handle; `nil` for a handle that libcurl has made for itself.
    private static func transfer(of easy: UnsafeMutableRawPointer) -> Transfer? {
        ccurl_private(easy).map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func table(_ context: UnsafeMutableRawPointer?) -> TransferTable? {
        context.map { Unmanaged<TransferTable>.fromOpaque($0).takeUnretainedValue() }
    }
}
