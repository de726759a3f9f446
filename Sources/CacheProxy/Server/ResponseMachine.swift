import HTTPCaching

/// How one response is delimited, and how it ends.
///
///     waiting ──head──▶ running ──end, or more bytes than promised──▶ over
///        │                 └──failure, or fewer bytes──▶ over, and the connection is cut
///        └──failure──▶ waiting for the head of an error
///
/// A pure value, one for each request.
///
/// Invariants:
/// 1. `remainingBytes` is 0 unless the framing is a length.
/// 2. The head comes once, and before every byte of the body.
struct ResponseMachine {
    enum Phase: UInt8 {
        case waiting
        case running
        case over
    }

    private(set) var phase = Phase.waiting
    private(set) var framing = ResponseFraming.none
    /// Bytes that the Content-Length still requires.
    private var remainingBytes = 0
    /// Bytes of the body that were passed on to the connection.
    private(set) var bodyBytes = 0

    private let isHead: Bool
    /// HTTP/1.0: no chunks, no 1xx.
    let isOldVersion: Bool
    private let asksToPersist: Bool
    private let requestMayPersist: Bool
    /// The client waits for a 100 before it sends its content.
    private(set) var awaitsContinue: Bool

    /// The response to a head that was refused.
    init() {
        isHead = false
        isOldVersion = false
        asksToPersist = false
        requestMayPersist = false
        awaitsContinue = false
    }

    init(_ head: borrowing RequestHead) {
        isHead = head.methodKind == .head
        isOldVersion = head.flags.contains(.isOldVersion)
        asksToPersist = head.flags.contains(.wantsKeepAlive)
        requestMayPersist = head.mayPersist
        awaitsContinue = head.flags.contains(.expectsContinue) && !isOldVersion && head.hasContent
    }

    var hasBegun: Bool { phase != .waiting }
    var isRunning: Bool { phase == .running }
    /// Whether the close of the connection is the end of the body.
    var endsWithConnection: Bool { hasBegun && framing == .untilClose }
    /// Whether another request may follow on the connection.
    var mayPersist: Bool { requestMayPersist && framing != .untilClose }

    /// The content of `Connection` in the head.
    func persistence(goesOn: Bool) -> ResponseHeadWriter.Persistence {
        guard goesOn else { return .ends }
        return isOldVersion && asksToPersist ? .goesOnSaidSo : .goesOn
    }

    /// The head is there; `bodyCount` is the size of the body if it is known.
    mutating func begin(status: Int, bodyCount: Int?) -> ResponseFraming {
        precondition(phase == .waiting, "A response begins once")
        phase = .running
        framing = ResponseFraming(
            status: status,
            isHead: isHead,
            bodyCount: bodyCount,
            isOldVersion: isOldVersion
        )
        if case .length(let count) = framing { remainingBytes = count }
        return framing
    }

    /// The whole body went out with the head.
    mutating func endedWithHead() {
        phase = .over
        bodyBytes += remainingBytes
        remainingBytes = 0
    }

    enum ChunkAction: Hashable {
        /// The response has no body.
        case drop
        case send
        /// Send it as a chunk (RFC 9112 §7.1).
        case sendAsChunk
        /// Send that many bytes and end the response: the rest was never promised.
        case sendLast(Int)
    }

    /// Bytes of the body.
    mutating func chunk(_ count: Int) -> ChunkAction {
        switch framing {
        case .none: return .drop
        case .untilClose:
            bodyBytes += count
            return .send
        case .chunked:
            bodyBytes += count
            return .sendAsChunk
        case .length:
            let promised = remainingBytes
            let sent = min(count, promised)
            bodyBytes += sent
            remainingBytes = promised - sent
            return count <= promised ? .send : .sendLast(promised)
        }
    }

    enum EndAction: Hashable {
        case nothing
        case sendLastChunk
        /// End the connection after the response: bytes are missing.
        case cut
    }

    /// The body is complete, as far as its source knows.
    mutating func end() -> EndAction {
        phase = .over
        guard remainingBytes == 0 else { return .cut }
        return framing == .chunked ? .sendLastChunk : .nothing
    }

    enum FailAction: Hashable {
        /// Respond with an error.
        case answerError
        /// End the connection after the response: its end is missing.
        case cut
        /// Reset the connection: a plain close would look like the end of the body.
        case reset
    }

    /// The source of the response failed, for example because the origin broke off its body.
    ///
    /// The client gets no last chunk, so that it can detect the missing end.
    mutating func fail() -> FailAction {
        guard hasBegun else { return .answerError }
        phase = .over
        return framing == .untilClose ? .reset : .cut
    }

    /// The content is wanted; returns whether the client needs a 100.
    mutating func contentWanted() -> Bool {
        defer { if !hasBegun { awaitsContinue = false } }
        return awaitsContinue && !hasBegun
    }
}
