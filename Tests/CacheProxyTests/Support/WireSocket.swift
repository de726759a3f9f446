import Foundation
import Platform

/// A blocking socket with a time limit on every call, so that no test can hang.
///
/// `@unchecked Sendable`: one thread at a time uses it; the descriptor is set once.
final class WireSocket: @unchecked Sendable {
    static let limitSeconds = 20

    private(set) var descriptor: Int32
    private var buffer: [UInt8] = []

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        var limit = timeval(tv_sec: Self.limitSeconds, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, 4)
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    static func make() -> Int32 {
        openStreamSocket(AF_INET)
    }

    static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        return address
    }

    /// A listener at the port, or at a free one, for which so many connections may wait.
    static func listening(
        at port: UInt16 = 0,
        waiting: Int32,
        receiveBytes: Int32? = nil
    ) throws -> (descriptor: Int32, port: UInt16) {
        let descriptor = make()
        var one: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, 4)
        // The accepted sockets have it too.
        if var receiveBytes {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBytes, 4)
        }
        var address = address(port)
        var count = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, count) == 0 && listen(descriptor, waiting) == 0
                    && getsockname(descriptor, $0, &count) == 0
            }
        }
        guard isListening else {
            defer { close(descriptor) }
            throw WireFailure("listen: \(errno)")
        }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    /// Waits for a client of the listener.
    static func accepted(by listener: Int32) throws -> WireSocket {
        var watched = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        guard poll(&watched, 1, Int32(limitSeconds) * 1_000) == 1 else { throw WireFailure.silence }
        let descriptor = accept(listener, nil, nil)
        guard descriptor >= 0 else { throw WireFailure("accept: \(errno)") }
        return WireSocket(descriptor)
    }

    static func connected(to port: UInt16, receiveBytes: Int32? = nil) throws -> WireSocket {
        let descriptor = make()
        if var receiveBytes {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBytes, 4)
        }
        var address = address(port)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            close(descriptor)
            throw WireFailure("connect: \(errno)")
        }
        return WireSocket(descriptor)
    }

    /// A socket that is connected to one in the file system; `nil` if it cannot be.
    static func connected(toPath path: String) -> WireSocket? {
        let descriptor = openStreamSocket(AF_UNIX)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else {
            close(descriptor)
            return nil
        }
        return WireSocket(descriptor)
    }

    func write(_ bytes: [UInt8]) throws {
        var offset = 0
        while offset < bytes.count {
            let count = bytes[offset...].withUnsafeBytes { rest in
                send(descriptor, rest.baseAddress, rest.count, sendsNoSignal)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw WireFailure("send: \(errno)") }
            offset += count
        }
    }

    func write(_ text: String) throws { try write(Array(text.utf8)) }

    func endOutput() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Sends the last bytes together with the end of the stream.
    func end(with text: String) throws {
        #if os(Linux)
            var one: Int32 = 1
            setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_CORK, &one, 4)
        #endif
        try write(text)
        endOutput()
    }

    /// Closes the connection with a reset.
    func abort() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        close(descriptor)
        descriptor = -1
    }

    /// Reads more bytes into the buffer; returns `false` at the end of the stream.
    private func fill() throws -> Bool {
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = recv(descriptor, &chunk, chunk.count, 0)
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == ECONNRESET { throw WireFailure.reset }
            if count < 0, errno == EAGAIN { throw WireFailure.silence }
            guard count >= 0 else { throw WireFailure("recv: \(errno)") }
            buffer += chunk[..<count]
            return count > 0
        }
    }

    /// Reads up to and including `mark`; returns `nil` if the stream ends first.
    func read(through mark: String, limit: Int = 1 << 20) throws -> [UInt8]? {
        let mark = Array(mark.utf8)
        var searched = 0
        while true {
            if buffer.count >= mark.count {
                for start in searched...(buffer.count - mark.count)
                where buffer[start..<start + mark.count].elementsEqual(mark) {
                    let found = Array(buffer[..<(start + mark.count)])
                    buffer.removeFirst(start + mark.count)
                    return found
                }
                searched = buffer.count - mark.count + 1
            }
            guard buffer.count < limit, try fill() else { return nil }
        }
    }

    func read(exactly count: Int) throws -> [UInt8]? {
        while buffer.count < count {
            guard try fill() else { return nil }
        }
        defer { buffer.removeFirst(count) }
        return Array(buffer[..<count])
    }

    /// Reads at most `count` bytes, as they arrive; returns an empty array at the end.
    func read(upTo count: Int) throws -> [UInt8] {
        if buffer.isEmpty, try !fill() { return [] }
        let taken = Array(buffer.prefix(count))
        buffer.removeFirst(taken.count)
        return taken
    }

    /// Returns whether neither bytes nor an end arrive for that long.
    func isSilent(milliseconds: Int32) -> Bool {
        var watched = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return buffer.isEmpty && poll(&watched, 1, milliseconds) == 0
    }

    func readToEnd() throws -> [UInt8] {
        while try fill() {}
        defer { buffer = [] }
        return buffer
    }

    /// Reads the remaining bytes after the peer has ended or reset the connection.
    func readToEndOrReset() throws -> [UInt8] {
        do {
            while try fill() {}
        } catch let failure as WireFailure where failure == .reset {}
        defer { buffer = [] }
        return buffer
    }
}

struct WireFailure: Error, CustomStringConvertible, Equatable {
    let description: String
    init(_ description: String) { self.description = description }

    static let reset = WireFailure("reset")
    /// No bytes arrived within the time limit of a test.
    static let silence = WireFailure("Nothing came")
}

/// Waits until the condition is true, within the time limit of a test.
///
/// Returns whether it became true.
func eventually(_ isSo: @escaping @Sendable () -> Bool) async -> Bool {
    let answer = try? await onThread {
        for _ in 0..<WireSocket.limitSeconds * 200 {
            if isSo() { return true }
            poll(nil, 0, 5)
        }
        return isSo()
    }
    return answer ?? false
}

/// Runs blocking work on a new thread, because Swift's thread pool must not block.
func onThread<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
) async throws -> Result {
    try await withUnsafeThrowingContinuation { continuation in
        let thread = Thread { continuation.resume(with: Swift.Result { try body() }) }
        thread.stackSize = 512 * 1024
        thread.start()
    }
}
