import Platform

/// The address at the other end of a socket.
enum PeerAddress {
    /// The address as a value; `nil` for a socket in the file system.
    static func address(_ socket: Int32) -> IPAddress? { IPAddress(text(socket)) }

    /// The numeric address; empty for a socket in the file system.
    static func text(_ socket: Int32) -> String {
        var storage = sockaddr_storage()
        var count = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &storage) { bytes in
            guard let base = bytes.baseAddress else { return "" }
            let address = base.assumingMemoryBound(to: sockaddr.self)
            guard getpeername(socket, address, &count) == 0 else { return "" }
            let family = Int32(address.pointee.sa_family)
            // The offset of the address in sockaddr_in and sockaddr_in6.
            guard let offset = [AF_INET: 4, AF_INET6: 8][family] else { return "" }
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            guard inet_ntop(family, base + offset, &text, socklen_t(text.count)) != nil else {
                return ""
            }
            return String(
                decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) },
                as: UTF8.self
            )
        }
    }
}
