import CacheEngine

/// A client's connection: what was read and not used, what is being answered, and what was written
/// and not taken.
///
///     reading ──head──▶ answering ──end──▶ reading …
///        │                  └──last answer──▶ lingering ──▶ closed
///        └──fault──▶ lingering
///
/// Belongs to the thread of its worker. An idle one holds no buffer.
///
/// Invariants:
/// 1. While `exchange` is set no further head is read.
/// 2. `sink` is set only while `content` is.
final class Connection {
    let socket: Int32
    let id: ConnectionID

    /// The socket may have bytes that were not read yet.
    var isReadable = false
    /// The end of what the client sends lies behind the bytes not read yet; no edge will tell again.
    var isEndReported = false
    /// The socket may take bytes.
    var isWritable = true
    /// The client will send no more.
    var hasEnded = false
    /// The answer under way, or the last one queued, ends the connection.
    var closesBehindAnswer = false
    /// Bytes nobody will read may be on their way.
    var mustLinger = false
    /// Everything is said; what still comes in is thrown away.
    var isLingering = false
    var isClosed = false
    /// It is in the worker's list of those whose turn ended before their input did.
    var waitsForTurn = false

    /// Bytes read and not used yet.
    var pending: PendingInput?
    @exclusivity(unchecked) var queue = OutputQueue()
    /// Body bytes of the exchange that stand in the queue.
    var unacknowledgedBytes = 0

    var exchange: Exchange?
    @exclusivity(unchecked) var answer = AnswerProgress()
    /// What is still to come of the request's content.
    @exclusivity(unchecked) var content: ContentDecoder?
    /// Where it goes; nil when nobody wants it.
    var sink: RequestContent?
    var isContentPaused = false
    var discardedBytes = 0
    /// What the log will say about the request being answered.
    var logLine: AccessLogLine?

    init(socket: Int32, id: ConnectionID) {
        self.socket = socket
        self.id = id
    }
}

/// Bytes of a request that has not come whole, and how far they were looked at.
final class PendingInput {
    var bytes: [UInt8]
    var parser: RequestParser

    init(bytes: [UInt8], parser: RequestParser) {
        self.bytes = bytes
        self.parser = parser
    }
}

/// How far the answer to a request has come.
struct AnswerProgress {
    /// What the client's request says about how it is to be answered.
    var isHead = false
    var isOldVersion = false
    var mayPersist = true
    var expectsContinue = false
    var asksToPersist = false

    /// The head is out.
    var hasBegun = false
    var framing = ResponseFraming.none
    /// Bytes still owed to a Content-Length.
    var remaining = 0
}
