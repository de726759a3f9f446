/// The address of a host with its port, in the form that the system connects to.
package struct SocketAddress: Hashable, Sendable {
    /// The addresses of one name that are tried.
    package static let countMax = 8

    package let family: Int32
    /// The bytes of a `sockaddr` of its family.
    private let bytes: [UInt8]

    private init(_ info: addrinfo) {
        bytes = [UInt8](UnsafeRawBufferPointer(start: info.ai_addr, count: Int(info.ai_addrlen)))
        family = info.ai_family
    }

    /// Begins a connection of `socket`; returns 0, or the error number.
    package func beginConnection(of socket: Int32) -> Int32 {
        bytes.withUnsafeBytes { bytes in
            guard let address = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else {
                return EINVAL
            }
            return connect(socket, address, socklen_t(bytes.count)) == 0 ? 0 : errno
        }
    }

    /// The address that `host` spells, an IPv6 one perhaps in brackets; `nil` if it is a name.
    package static func literal(_ host: String, port: Int) -> SocketAddress? {
        let bare = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        return try? resolve(bare, port: port, flags: AI_NUMERICHOST).get().first
    }

    /// The addresses of a name, which may block for seconds; `flags` are those of the resolver.
    package static func resolve(
        _ name: String,
        port: Int,
        flags: Int32 = 0
    ) -> Result<[SocketAddress], LookUpFailure> {
        var hints = addrinfo()
        hints.ai_socktype = streamSocketType
        hints.ai_flags = flags | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        // The resolver leaves the error number of the call that failed, and no other.
        errno = 0
        let code = getaddrinfo(name, String(port), &hints, &list)
        let systemCode = errno
        guard code == 0 else {
            return .failure(LookUpFailure(code: code, systemCode: systemCode))
        }
        defer { freeaddrinfo(list) }
        return .success(addresses(in: list))
    }

    /// The first addresses of the resolver's list.
    package static func addresses(in list: UnsafeMutablePointer<addrinfo>?) -> [SocketAddress] {
        var addresses: [SocketAddress] = []
        var next = list
        while let info = next?.pointee, addresses.count < countMax {
            addresses.append(SocketAddress(info))
            next = info.ai_next
        }
        return addresses
    }
}
