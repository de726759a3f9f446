/// A ready socket and the operations that it is ready for.
package struct SocketReadiness {
    package let socket: Int32
    package let isReadable: Bool
    package let isWritable: Bool
    package let isBroken: Bool
}

/// The reason why the system watches no sockets: the text of an error number.
package struct PollerFailure: Error {
    package let reason: String

    init() { reason = String(cString: strerror(errno)) }
}

/// The operations that a socket is watched for.
package struct SocketInterest: OptionSet, Hashable, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    package static let readable = Self(rawValue: 1)
    package static let writable = Self(rawValue: 2)
}

#if os(Linux)
    package typealias SocketPoller = EpollPoller
#else
    package typealias SocketPoller = PortablePoller
#endif
