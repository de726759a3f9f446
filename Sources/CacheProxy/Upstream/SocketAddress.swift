import CacheEngine
import Platform

/// The address of a host with its port, in the form that the system connects to.
struct SocketAddress: Hashable, Sendable {
    /// The bytes of a `sockaddr` of its family.
    private let bytes: [UInt8]
    let family: Int32

    private init(_ info: addrinfo) {
        bytes = [UInt8](UnsafeRawBufferPointer(start: info.ai_addr, count: Int(info.ai_addrlen)))
        family = info.ai_family
    }

    /// Begins a connection of `socket`; returns 0, or the error number.
    func connect(_ socket: Int32) -> Int32 {
        bytes.withUnsafeBytes { bytes in
            guard let address = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else {
                return EINVAL
            }
            return Platform.connect(socket, address, socklen_t(bytes.count)) == 0 ? 0 : errno
        }
    }

    /// The address that `host` spells; `nil` if it is a name.
    static func literal(_ host: String, port: Int) -> SocketAddress? {
        try? resolve(host, port: port, flags: AI_NUMERICHOST).get().first
    }

    /// The addresses of a name; blocks.
    static func resolve(_ host: String, port: Int) -> Result<[SocketAddress], any Error> {
        resolve(host, port: port, flags: AI_ADDRCONFIG)
    }

    private static func resolve(
        _ host: String,
        port: Int,
        flags: Int32
    ) -> Result<[SocketAddress], any Error> {
        let name = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        var hints = addrinfo()
        hints.ai_socktype = streamSocketType
        hints.ai_flags = flags | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        // The resolver leaves the error number of the call that failed, and no other.
        errno = 0
        let code = getaddrinfo(name, String(port), &hints, &list)
        let systemCode = errno
        guard code == 0 else {
            let error = UpstreamFailure.unresolved(host, code: code, systemCode: systemCode)
            return .failure(error)
        }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = list
        while let info = next?.pointee {
            addresses.append(SocketAddress(info))
            next = info.ai_next
        }
        return .success(addresses)
    }
}
