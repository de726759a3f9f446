import Platform

/// The system calls of the tests' servers, on 127.0.0.1.
package enum LoopbackSocket {
    /// Returns a socket that listens on 127.0.0.1, and its port.
    package static func listen() throws -> (socket: Int32, port: UInt16) {
        let (socket, port) = try bind()
        guard listen(socket) else {
            let reason = errno
            close(socket)
            throw LoopbackFailure(description: "listen: errno \(reason)")
        }
        return (socket, port)
    }

    /// Returns a socket that has a port, any for 0, and does not listen; and that port.
    static func bind(to port: UInt16 = 0) throws -> (socket: Int32, port: UInt16) {
        let socket = openStreamSocket(AF_INET)
        guard socket >= 0 else { throw LoopbackFailure(description: "socket: errno \(errno)") }
        let (isBound, bound) = withAddress(port) { address, length in
            Platform.bind(socket, address, length) == 0
                && getsockname(socket, address, &length) == 0
        }
        guard isBound else {
            let reason = errno
            close(socket)
            throw LoopbackFailure(description: "bind: errno \(reason)")
        }
        return (socket, bound)
    }

    /// Returns a connection to a port; `nil` if it is refused.
    package static func connect(to port: UInt16) -> Int32? {
        let socket = openStreamSocket(AF_INET)
        let (isConnected, _) = withAddress(port) { address, length in
            Platform.connect(socket, address, length) == 0
        }
        if isConnected { return socket }
        close(socket)
        return nil
    }

    /// Calls `body` with the address of a port, and returns the port that stands there then.
    private static func withAddress(
        _ port: UInt16,
        _ body: (UnsafeMutablePointer<sockaddr>, inout socklen_t) -> Bool
    ) -> (Bool, UInt16) {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isDone = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, &length) }
        }
        return (isDone, UInt16(bigEndian: address.sin_port))
    }

    static func accept(_ listener: Int32) -> Int32? {
        while true {
            let socket = Platform.accept(listener, nil, nil)
            if socket >= 0 {
                var on: Int32 = 1
                setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, 4)
                return socket
            }
            guard errno == EINTR || errno == ECONNABORTED else { return nil }
        }
    }

    static func read(_ socket: Int32) -> [UInt8]? {
        var count = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, initialized in
            repeat {
                count = recv(socket, buffer.baseAddress, buffer.count, 0)
            } while count < 0
                && errno == EINTR
            initialized = max(0, count)
        }
        return count < 0 ? nil : bytes
    }

    static func write(_ socket: Int32, _ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var offset = 0
            while offset < bytes.count {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
                let sent = send(socket, rest.baseAddress, rest.count, sendsNoSignal)
                if sent < 0 && errno == EINTR { continue }
                guard sent > 0 else { return false }
                offset += sent
            }
            return true
        }
    }

    static func shutDown(_ socket: Int32) { _ = shutdown(socket, Int32(SHUT_RDWR)) }

    /// Makes the next close of the socket send a reset.
    static func lingerNot(_ socket: Int32) {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            socket,
            SOL_SOCKET,
            SO_LINGER,
            &linger,
            socklen_t(MemoryLayout.size(ofValue: linger))
        )
    }

    static func close(_ socket: Int32) { _ = Platform.close(socket) }

    private static func listen(_ socket: Int32) -> Bool { Platform.listen(socket, 1024) == 0 }
}

// MARK: - Threads

extension LoopbackSocket {
    /// Small enough for a thousand threads.
    private static let stackBytes = 256 << 10

    /// Runs `body` on a new thread.
    static func startThread(_ body: @escaping @Sendable () -> Void) {
        do throws(SystemThread.Failure) {
            try SystemThread(stackBytes: stackBytes, body).detach()
        } catch {
            preconditionFailure("A test has too many threads: error \(error.code)")
        }
    }
}
