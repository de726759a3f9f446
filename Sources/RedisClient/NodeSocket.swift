import Platform

/// The system calls on one connected socket, none of which blocks.
struct NodeSocket {
    enum Outcome: Hashable {
        case moved(Int)
        case wouldBlock
        /// The peer has closed its end.
        case ended
        case failed(code: Int32)
    }

    let descriptor: Int32

    /// Begins to connect; `nil` with `errno` if the system refuses at once.
    init?(connectingTo address: SocketAddress) {
        descriptor = openStreamSocket(address.family)
        guard descriptor >= 0 else { return nil }
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        switchOn(Int32(IPPROTO_TCP), TCP_NODELAY, of: descriptor)
        switchOn(SOL_SOCKET, SO_KEEPALIVE, of: descriptor)
        let code = address.beginConnection(of: descriptor)
        guard code == 0 || code == EINPROGRESS else {
            close()
            errno = code
            return nil
        }
    }

    /// The error of the attempt to connect; 0 if it succeeded.
    func connectError() -> Int32 {
        var code: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno
    }

    func receive(into room: UnsafeMutableRawBufferPointer) -> Outcome {
        let count = recv(descriptor, room.baseAddress, room.count, 0)
        return count == 0 ? .ended : Self.outcome(count)
    }

    func send(_ bytes: UnsafeRawBufferPointer) -> Outcome {
        Self.outcome(Platform.send(descriptor, bytes.baseAddress, bytes.count, sendsNoSignal))
    }

    private static func outcome(_ count: Int) -> Outcome {
        if count >= 0 { return .moved(count) }
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR
            ? .wouldBlock : .failed(code: errno)
    }

    func close() { _ = Platform.close(descriptor) }

    /// Closes with a reset: bytes that the peer does not have yet are not sent again.
    func reset() {
        if !Mutant.closesLateConnectionsInOrder.isOn { resetOnClose(descriptor) }
        close()
    }
}
