/// The type of a stream socket, which some systems declare as an enumeration.
package var streamSocketType: Int32 {
    #if canImport(Glibc)
        Int32(SOCK_STREAM.rawValue)
    #else
        SOCK_STREAM
    #endif
}

/// Opens a stream socket that programs started by this process do not inherit.
///
/// Sends with `sendsNoSignal` raise no signal. Returns a negative number, and sets `errno`, if the
/// system refuses.
package func openStreamSocket(_ family: Int32) -> Int32 {
    // In one step where the system can: another thread may start a program between two.
    #if canImport(Glibc)
        return socket(family, streamSocketType | Int32(SOCK_CLOEXEC.rawValue), 0)
    #elseif canImport(Musl)
        return socket(family, streamSocketType | SOCK_CLOEXEC, 0)
    #else
        let descriptor = socket(family, streamSocketType, 0)
        guard descriptor >= 0 else { return descriptor }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        #if canImport(Darwin)
            switchOn(SOL_SOCKET, SO_NOSIGPIPE, of: descriptor)
        #endif
        return descriptor
    #endif
}

/// Switches an option of a socket on.
package func switchOn(_ level: Int32, _ option: Int32, of socket: Int32) {
    var on: Int32 = 1
    setsockopt(socket, level, option, &on, socklen_t(MemoryLayout<Int32>.size))
}

/// Makes the close of a socket reset its connection: bytes that the peer does not have yet are not
/// sent again.
package func resetOnClose(_ socket: Int32) {
    var atOnce = linger(l_onoff: 1, l_linger: 0)
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &atOnce, socklen_t(MemoryLayout<linger>.size))
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
