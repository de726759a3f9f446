/// One socket that is ready, and for what.
struct SocketReadiness {
    let socket: Int32
    let isReadable: Bool
    let isWritable: Bool
    let isBroken: Bool
}

/// What is wanted of a socket.
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
