/// The type of a stream socket, which some systems declare as an enumeration.
package var streamSocketType: Int32 {
    #if canImport(Glibc)
        Int32(SOCK_STREAM.rawValue)
    #else
        SOCK_STREAM
    #endif
}

/// The flags of a `send` that must not raise a signal.
///
/// Darwin has no such flag; there a socket needs the option `SO_NOSIGPIPE`.
package var sendsNoSignal: Int32 {
    #if canImport(Darwin)
        0
    #else
        Int32(bitPattern: UInt32(truncatingIfNeeded: Int(MSG_NOSIGNAL)))
    #endif
}
