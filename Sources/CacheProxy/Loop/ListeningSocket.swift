import CProxyShims
import Platform

/// A socket that accepts connections.
struct ListeningSocket: Sendable {
    /// Connections the kernel holds until they are accepted.
    private static let backlog: Int32 = 1_024

    let descriptor: Int32
    /// The address, with the port that the kernel chose for port 0.
    let address: ListenAddress

    /// Listens at `address`, alone or beside other sockets of this process.
    ///
    /// - Throws: `SystemError`, for example if the port is in use.
    init(_ address: ListenAddress, sharing: Sharing) throws(SystemError) {
        switch address {
        case .tcp(let host, let port):
            let family = host.contains(":") ? AF_INET6 : AF_INET
            descriptor = try Self.open(family, address)
            switchOn(SOL_SOCKET, SO_REUSEADDR, of: descriptor)
            if sharing == .acrossWorkers { switchOn(SOL_SOCKET, SO_REUSEPORT, of: descriptor) }
            // Accepted connections inherit the option.
            switchOn(Int32(IPPROTO_TCP), TCP_NODELAY, of: descriptor)
            let isBound =
                family == AF_INET6
                ? Self.bindSix(descriptor, host: host, port: port)
                : Self.bindFour(descriptor, host: host, port: port)
            let listens = isBound && listen(descriptor, Self.backlog) == 0
            guard listens else { throw Self.failed(descriptor, address) }
            self.address = .tcp(host: host, port: port == 0 ? Self.port(descriptor) : port)
        case .unix(let path):
            descriptor = try Self.open(AF_UNIX, address)
            Self.removeAbandoned(path)
            let isBound = Self.give(Self.unixAddress(path), to: bind, of: descriptor)
            guard isBound, listen(descriptor, Self.backlog) == 0 else {
                throw Self.failed(descriptor, address)
            }
            self.address = address
        }
    }

    enum Sharing: Hashable, Sendable {
        /// The kernel spreads connections over all sockets of the port.
        case acrossWorkers
        /// A port in use is an error.
        case none
    }

    private static func open(_ family: Int32, _ address: ListenAddress) throws(SystemError) -> Int32
    {
        let descriptor = openStreamSocket(family)
        guard descriptor >= 0 else { throw SystemError(.listen, "\(address)") }
        guard cp_prepare(descriptor) == 0 else { throw failed(descriptor, address) }
        return descriptor
    }

    private static func failed(_ descriptor: Int32, _ address: ListenAddress) -> SystemError {
        let error = SystemError(.listen, "\(address)")
        close(descriptor)
        return error
    }

    private static func bindFour(_ descriptor: Int32, host: String, port: UInt16) -> Bool {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { return false }
        return give(address, to: bind, of: descriptor)
    }

    private static func bindSix(_ descriptor: Int32, host: String, port: UInt16) -> Bool {
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        guard inet_pton(AF_INET6, host, &address.sin6_addr) == 1 else { return false }
        return give(address, to: bind, of: descriptor)
    }

    private static func unixAddress(_ path: String) -> sockaddr_un {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { room in
            room.copyBytes(from: path.utf8.prefix(room.count - 1))
        }
        return address
    }

    /// - Returns: Whether the system call took the address.
    private static func give<Address>(
        _ address: Address,
        to call: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32,
        of descriptor: Int32
    ) -> Bool {
        withUnsafeBytes(of: address) { bytes in
            guard let base = bytes.baseAddress else { return false }
            let pointer = base.assumingMemoryBound(to: sockaddr.self)
            return call(descriptor, pointer, socklen_t(bytes.count)) == 0
        }
    }

    private static func port(_ descriptor: Int32) -> UInt16 {
        var storage = sockaddr_storage()
        var count = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &storage) { bytes in
            guard let base = bytes.baseAddress,
                getsockname(descriptor, base.assumingMemoryBound(to: sockaddr.self), &count) == 0
            else { return 0 }
            // The port has the same offset in both families.
            return UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self))
        }
    }

    /// Removes the socket file of a process that was killed: no process listens on it.
    private static func removeAbandoned(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return }
        guard let probe = try? open(AF_UNIX, .unix(path: path)) else { return }
        defer { close(probe) }
        if give(unixAddress(path), to: connect, of: probe) { return }
        if errno == ECONNREFUSED { unlink(path) }
    }
}
