import CacheEngine
import Platform

/// A client's connection: its socket, the input not used yet, the open request, and the output not
/// sent yet.
///
/// Belongs to the thread of its worker. `machine` decides and `Worker` acts. An idle connection
/// holds no buffer.
///
/// Invariants:
/// 1. `pendingResponse` is set only while `machine` has an open request.
/// 2. `content` is set exactly while `machine` has content, and `sink` only while `content` is.
/// 3. `pending` is set exactly while `machine` holds input or awaits the PROXY header.
final class Connection {
    let socket: Int32
    let id: ConnectionID
    /// The address at the other end of the socket; `nil` for a socket in the file system.
    let peer: IPAddress?

    var machine: ConnectionMachine
    var response = ResponseMachine()

    /// Bytes read and not used yet.
    var pending: PendingInput?
    /// Whether an empty line came since the last head: a second one begins a head.
    var hasSkippedLine = false
    var queue = OutputQueue()
    /// Whether the client takes the bytes that the system holds, since the socket took no more.
    var progress = SendProgress()
    /// The cost of the pending response's pieces that were taken.
    var unacknowledgedBytes = 0

    var pendingResponse: PendingResponse?
    /// The rest of the request's content.
    var content: BodyDecoder?
    /// The time at which a response was complete, or the socket had taken it, although content was
    /// left.
    var answeredAt = Int64.min
    /// The reader of the content; `nil` if the content is dropped.
    var sink: RequestContent?
    /// The client's address in writing, from the PROXY header or after its first use.
    private var knownAddress: String?
    /// The scheme of the client's own connection, if a PROXY header told it.
    private(set) var scheme: RequestScheme?
    /// Whether a response that broke off was counted.
    var hasAborted = false
    /// The log's line about the open request.
    var logLine: AccessLogLine?

    init(
        socket: Int32,
        id: ConnectionID,
        peer: IPAddress?,
        discardedBytesMax: Int,
        beginsAs course: ConnectionMachine.Course
    ) {
        self.socket = socket
        self.id = id
        self.peer = peer
        machine = ConnectionMachine(discardedBytesMax: discardedBytesMax, beginsAs: course)
        // Held input takes the way that a PROXY header needs, so requests are not asked about it.
        if course == .announcing { pending = PendingInput(bytes: [], parser: RequestParser()) }
    }

    /// The client's numeric address; empty for a socket in the file system.
    var clientAddress: String {
        let address = knownAddress ?? peer?.text ?? ""
        knownAddress = address
        return address
    }

    /// Takes the client that the proxy in front names.
    func take(_ header: ProxyHeader) {
        guard case .client(let address, let scheme) = header else { return }
        self.scheme = scheme
        if !Mutant.ignoresAnnouncedAddress.isOn { knownAddress = address?.text ?? "" }
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
