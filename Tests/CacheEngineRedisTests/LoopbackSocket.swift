import Platform

/// The calls that the tests' servers need, on 127.0.0.1.
enum LoopbackSocket {
    struct Failure: Error {
        let code = errno
    }

    private static func withAddress<Result>(
        _ port: UInt16,
        _ body: (UnsafeMutablePointer<sockaddr>, inout socklen_t) -> Result
    ) -> (Result, UInt16) {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, &length) }
        }
        return (result, UInt16(bigEndian: address.sin_port))
    }

    /// A socket that listens on a free port.
    static func listen() throws -> (socket: Int32, port: UInt16) {
        let listener = socket(AF_INET, streamSocketType, 0)
        let (isListening, port) = withAddress(0) { address, length in
            bind(listener, address, length) == 0 && Platform.listen(listener, 64) == 0
                && getsockname(listener, address, &length) == 0
        }
        guard isListening else { throw Failure() }
        return (listener, port)
    }

    /// A connection to a port; `nil` if it is refused.
    static func connect(to port: UInt16) -> Int32? {
        let connection = socket(AF_INET, streamSocketType, 0)
        let (code, _) = withAddress(port) { Platform.connect(connection, $0, $1) }
        if code == 0 { return connection }
        close(connection)
        return nil
    }

    /// A port on which no server listens.
    static func freePort() throws -> UInt16 {
        let (listener, port) = try listen()
        close(listener)
        return port
    }
}
