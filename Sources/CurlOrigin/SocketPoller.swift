/// A ready socket and the operations that it is ready for.
struct SocketReadiness {
    let socket: Int32
    let isReadable: Bool
    let isWritable: Bool
    let isBroken: Bool
}

/// The operations that a socket is watched for.
struct SocketInterest: OptionSet, Hashable {
    let rawValue: Int

    static let readable = Self(rawValue: 1)
    static let writable = Self(rawValue: 2)
}

#if os(Linux)
    typealias SocketPoller = EpollPoller
#else
    typealias SocketPoller = PortablePoller
#endif
