import CProxyShims
import Platform

/// A connection that a listener has accepted.
struct AcceptedSocket {
    let descriptor: Int32
    /// The address at the other end, which the socket no longer tells once that end has reset it; `nil`
    /// for a socket in the file system.
    let peer: IPAddress?

    /// Accepts a connection; returns `nil`, with the reason in `errno`, if that fails.
    init?(from listener: Int32) {
        var address = sockaddr_storage()
        descriptor = cp_accept(listener, &address)
        guard descriptor >= 0 else { return nil }
        peer = IPAddress(address)
    }
}
