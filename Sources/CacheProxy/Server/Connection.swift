import CacheEngine

/// A client's connection: its socket, the input not used yet, the open request, and the output not
/// sent yet.
///
/// Belongs to the thread of its worker. `machine` decides and `Worker` acts. An idle connection
/// holds no buffer.
///
/// Invariants:
/// 1. `task` is set only while `machine` has an open request.
/// 2. `content` is set exactly while `machine` has content, and `sink` only while `content` is.
/// 3. `pending` is set exactly while `machine` holds input.
final class Connection {
    let socket: Int32
    let id: ConnectionID

    @exclusivity(unchecked) var machine: ConnectionMachine
    @exclusivity(unchecked) var response = ResponseMachine()

    /// Bytes read and not used yet.
    var pending: PendingInput?
    @exclusivity(unchecked) var queue = OutputQueue()
    /// Body bytes of the task that are queued.
    var unacknowledgedBytes = 0

    var task: ResponseTask?
    /// The rest of the request's content.
    @exclusivity(unchecked) var content: ContentDecoder?
    /// The reader of the content; `nil` if the content is dropped.
    var sink: RequestContent?
    /// The client's address, after its first use.
    var peer: String?
    /// The log's line about the open request.
    var logLine: AccessLogLine?

    init(socket: Int32, id: ConnectionID, discardedBytesMax: Int) {
        self.socket = socket
        self.id = id
        machine = ConnectionMachine(discardedBytesMax: discardedBytesMax)
    }
}

/// The bytes of an incomplete request, and how far they were parsed.
final class PendingInput {
    var bytes: [UInt8]
    var parser: RequestParser

    init(bytes: [UInt8], parser: RequestParser) {
        self.bytes = bytes
        self.parser = parser
    }
}
