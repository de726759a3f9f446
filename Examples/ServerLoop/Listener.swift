import CacheEngine

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A socket that listens on the loopback interface, on a port chosen by the system.
struct Listener {
    let port: UInt16
    let arrivals: AsyncStream<Arrival>

    init() throws {
        #if canImport(Glibc)
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
            let listener = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && listen(listener, 128) == 0
                    && getsockname(listener, address, &length) == 0
            }
        }
        guard isListening else {
            throw CacheError(.configurationInvalid, detail: "No socket: errno \(errno)")
        }
        port = UInt16(bigEndian: address.sin_port)
        arrivals = Self.arrivals(at: listener)
    }

    /// Prints the address and flushes the output, in case it is a pipe.
    func announce() {
        print("listening on http://127.0.0.1:\(port)")
        fflush(nil)
    }

    /// Returns the stream of requests; one thread blocks in `accept`, and one for each connection
    /// in reading its request.
    private static func arrivals(at listener: Int32) -> AsyncStream<Arrival> {
        let (stream, continuation) = AsyncStream<Arrival>.makeStream()
        let isAccepting = Thread.start {
            while true {
                let socket = accept(listener, nil, nil)
                guard socket >= 0 else {
                    // The client has gone, or too many files are open: others may close theirs.
                    usleep(10_000)
                    continue
                }
                let connection = Connection(socket: socket)
                connection.limitWaits()
                let isReading = Thread.start {
                    guard let arrival = connection.readRequest() else {
                        return connection.refuse("400 Bad Request")
                    }
                    guard arrival.isSupported else {
                        return connection.refuse("501 Not Implemented")
                    }
                    continuation.yield(arrival)
                }
                if !isReading { connection.close() }
            }
        }
        if !isAccepting { continuation.finish() }
        return stream
    }
}

/// A request, and the connection that waits for its response.
struct Arrival: Sendable {
    let connection: Connection
    let method: String
    let target: String
    let fields: HeaderFields

    /// Whether the method is GET or HEAD, and no content follows the head.
    var isSupported: Bool {
        ["GET", "HEAD"].contains(method) && !fields.contains("Transfer-Encoding")
            && (fields["Content-Length"] ?? "0") == "0"
    }
}

/// One connection with blocking reads and writes.
struct Connection: Sendable {
    let socket: Int32

    /// The client reads no more, or has closed the connection.
    private struct Lost: Error {}

    /// The largest head that the server accepts.
    private static let headBytesMax = 64 << 10

    /// The limit of the content that is read after a refusal.
    private static let refusedBytesMax = 1 << 20

    /// The longest wait for a byte, in either direction.
    private static let waitSecondsMax = 10

    /// Makes every read and write fail that waits too long.
    func limitWaits() {
        var limit = timeval(tv_sec: Self.waitSecondsMax, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            _ = setsockopt(socket, SOL_SOCKET, option, &limit, size)
        }
    }

    /// Reads the head of a request; `nil` if it is not valid HTTP/1.1.
    func readRequest() -> Arrival? {
        var head: [UInt8] = []
        var byte: UInt8 = 0
        while head.suffix(4) != [13, 10, 13, 10] {
            guard head.count < Self.headBytesMax, recv(socket, &byte, 1, 0) == 1 else { return nil }
            head.append(byte)
        }
        guard let text = String(validating: head, as: UTF8.self) else { return nil }
        let lines = text.split(separator: "\r\n")
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count == 3, words[1].hasPrefix("/"), words[2] == "HTTP/1.1",
            words[1].utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        var fields = HeaderFields()
        for line in lines.dropFirst() {
            // A line that would break the message is not appended.
            guard let colon = line.firstIndex(of: ":"),
                fields.append(String(line[..<colon]), String(line[line.index(after: colon)...]))
            else { return nil }
        }
        return Arrival(
            connection: self,
            method: String(words[0]),
            target: String(words[1]),
            fields: fields
        )
    }

    func write(_ text: String) throws { try write([UInt8](text.utf8)) }

    /// Writes all bytes; throws if the client does not take them in time.
    func write(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes { bytes in
                #if canImport(Glibc)
                    send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
                #else
                    send(socket, bytes.baseAddress, bytes.count, 0)
                #endif
            }
            guard sent > 0 else { throw Lost() }
            rest = rest.dropFirst(sent)
        }
    }

    /// Writes a whole response; its loss is no error, because the connection is closed next.
    func writeStatus(_ status: String, _ text: String = "") {
        let length = "Content-Length: \(text.utf8.count)\r\n"
        try? write("HTTP/1.1 \(status)\r\n\(length)Connection: close\r\n\r\n\(text)")
    }

    /// Answers a request that is not served, and closes the connection.
    ///
    /// The content is read first: the system resets a connection that is closed with unread bytes,
    /// and the client may lose the response.
    func refuse(_ status: String) {
        writeStatus(status)
        shutdown(socket, Int32(SHUT_WR))
        var bytes = [UInt8](repeating: 0, count: 4 << 10)
        var rest = Self.refusedBytesMax
        while rest > 0 {
            let count = recv(socket, &bytes, bytes.count, 0)
            if count <= 0 { break }
            rest -= count
        }
        close()
    }

    func close() {
        #if canImport(Glibc)
            _ = Glibc.close(socket)
        #else
            _ = Darwin.close(socket)
        #endif
    }
}

/// Starts a thread for blocking work.
enum Thread {
    private final class Work {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Returns `false` if the system has no room for another thread.
    static func start(_ run: @escaping @Sendable () -> Void) -> Bool {
        let work = Unmanaged.passRetained(Work(run))
        #if canImport(Glibc)
            var thread = pthread_t()
            let failure = pthread_create(&thread, nil, { startWork($0) }, work.toOpaque())
            if failure == 0 { pthread_detach(thread) }
        #else
            var thread: pthread_t?
            let failure = pthread_create(&thread, nil, { startWork($0) }, work.toOpaque())
            if failure == 0, let thread { pthread_detach(thread) }
        #endif
        if failure != 0 { work.release() }
        return failure == 0
    }

    fileprivate static func runWork(_ work: UnsafeMutableRawPointer) {
        Unmanaged<Work>.fromOpaque(work).takeRetainedValue().run()
    }
}

private func startWork(_ work: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let work { Thread.runWork(work) }
    return nil
}
