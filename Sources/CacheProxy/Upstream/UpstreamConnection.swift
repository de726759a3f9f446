import CacheEngine
import HTTPCaching
import Platform

/// A connection to an origin: its socket, the exchange on it, and the bytes not used yet.
///
/// Belongs to the thread of its loop. `machine` decides and `UpstreamTable` acts.
final class UpstreamConnection {
    let socket: Int32
    let token: UInt64
    let host: UpstreamHost
    let address: SocketAddress
    var machine = UpstreamMachine()
    var exchange: UpstreamExchange?

    var isReadable = false
    var isWritable = false
    /// The reader's window is full; it says when to read on.
    var isHeld = false
    /// It is in line for its next turn.
    var waitsForTurn = false

    var parser = ResponseParser(isHead: false)
    /// The bytes of an incomplete head.
    var head: [UInt8] = []
    var decoder: BodyDecoder?
    /// The final head, until it is delivered, and the body that arrived with it.
    var arrived: UpstreamHead?
    var pieces: [ByteChunk] = []
    var piecesBytes = 0
    /// The part of the request that the socket has not taken.
    var queue = OutputQueue()
    /// Whether the origin takes the bytes that the system holds, since the socket took no more, or
    /// the last byte.
    var progress = SendProgress()
    /// Whether the content is sent in chunks.
    var sendsChunks = false
    /// Whether the rest of the request is in `queue`.
    var hasQueuedAll = false
    /// A write found the connection broken; a later read may not tell.
    var isBroken = false
    /// The end of its time without an exchange.
    var idleEnd = Int64.max

    init(socket: Int32, token: UInt64, host: UpstreamHost, address: SocketAddress) {
        self.socket = socket
        self.token = token
        self.host = host
        self.address = address
    }

    /// Prepares for the exchange that begins.
    func begin(_ exchange: UpstreamExchange) {
        machine.exchangeBegan()
        self.exchange = exchange
        exchange.connection = self
        idleEnd = .max
        parser = ResponseParser(isHead: exchange.call.request.method.kind == .head)
        head = []
        decoder = nil
        arrived = nil
        pieces.removeAll(keepingCapacity: true)
        piecesBytes = 0
        queue = OutputQueue()
        progress = SendProgress()
        sendsChunks = false
        hasQueuedAll = false
        isHeld = false
    }
}
