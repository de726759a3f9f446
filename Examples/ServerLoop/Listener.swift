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
        Thread.start {
            while true {
                let socket = accept(listener, nil, nil)
                if socket < 0 { break }
                let connection = Connection(socket: socket)
                connection.limitWaits()
                Thread.start {
                    guard let (method, target) = connection.readRequest() else {
                        connection.write("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
                        return connection.close()
                    }
                    let arrival = Arrival(connection: connection, method: method, target: target)
                    continuation.yield(arrival)
                }
            }
            continuation.finish()
        }
        return stream
    }
}

/// A request, and the connection that waits for its response.
struct Arrival: Sendable {
    let connection: Connection
    let method: String
    let target: String
}

/// One connection with blocking reads and writes.
struct Connection: Sendable {
    let socket: Int32

    /// The largest head that the server accepts.
    private static let headBytesMax = 64 << 10

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

    /// Reads a request and returns its method and target, or `nil` if it is invalid.
    func readRequest() -> (method: String, target: String)? {
        var head: [UInt8] = []
        var byte: UInt8 = 0
        while head.suffix(4) != [13, 10, 13, 10] {
            guard head.count < Self.headBytesMax, recv(socket, &byte, 1, 0) == 1 else { return nil }
            head.append(byte)
        }
        let line = head.prefix { $0 != 13 }
        let words = String(decoding: line, as: UTF8.self).split(separator: " ")
        guard words.count == 3, words[1].hasPrefix("/") else { return nil }
        return (String(words[0]), String(words[1]))
    }

    func write(_ text: String) { write([UInt8](text.utf8)) }

    func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes { bytes in
                #if canImport(Glibc)
                    send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
                #else
                    send(socket, bytes.baseAddress, bytes.count, 0)
                #endif
            }
            guard sent > 0 else { return }
            rest = rest.dropFirst(sent)
        }
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

    static func start(_ run: @escaping @Sendable () -> Void) {
        let work = Unmanaged.passRetained(Work(run)).toOpaque()
        #if canImport(Glibc)
            var thread = pthread_t()
            pthread_create(&thread, nil, { startWork($0) }, work)
        #else
            var thread: pthread_t?
            pthread_create(&thread, nil, { startWork($0) }, work)
        #endif
    }

    fileprivate static func runWork(_ work: UnsafeMutableRawPointer) {
        Unmanaged<Work>.fromOpaque(work).takeRetainedValue().run()
    }
}

private func startWork(_ work: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let work { Thread.runWork(work) }
    return nil
}
