#if os(Linux)
    internal import CEpoll
#endif

/// Whether the peer of a socket takes bytes, told by those that the system still holds for it.
///
/// The system reports a socket as writable only when much of its buffer is free: on Linux a third,
/// which may be more than a megabyte. Until then a peer that reads steadily looks like one that
/// reads nothing.
package struct SendProgress: Sendable {
    /// The bytes that the socket held at the last look.
    private var lastHeld: Int32 = 0

    package init() {}

    /// Whether the system held bytes for the peer at the last look.
    package var holdsBytes: Bool { lastHeld > 0 }

    /// Looks at a socket whose peer must take bytes from now on.
    ///
    /// If the system does not tell, the bytes are so many that the peer seems to take none.
    package mutating func begin(_ socket: Int32) { lastHeld = Self.heldBytes(of: socket) ?? .max }

    /// Looks at the socket again; returns whether its peer has taken so many bytes since the last
    /// look, or all that there were.
    ///
    /// Bytes that were written since then count as not taken.
    package mutating func hasAdvanced(_ socket: Int32, byAtLeast floor: Int32 = 1) -> Bool {
        let before = lastHeld
        begin(socket)
        return before - lastHeld >= max(1, min(before, floor))
    }

    /// Whether the system tells that it holds bytes for the peer of the socket.
    package static func isKnownToHoldBytes(_ socket: Int32) -> Bool {
        (heldBytes(of: socket) ?? 0) > 0
    }

    /// The bytes that were written to the socket and that its peer has not confirmed; `nil` if the
    /// system does not tell.
    private static func heldBytes(of socket: Int32) -> Int32? {
        #if os(Linux)
            let count = cepoll_held_bytes(socket)
            return count < 0 ? nil : count
        #elseif canImport(Darwin)
            var count: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            let isKnown = getsockopt(socket, SOL_SOCKET, SO_NWRITE, &count, &size) == 0
            return isKnown ? count : nil
        #else
            return nil
        #endif
    }
}
