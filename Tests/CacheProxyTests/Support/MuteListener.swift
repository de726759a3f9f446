import Foundation

/// A port with a full connection queue: the system silently drops every further attempt.
final class MuteListener: Sendable {
    let port: UInt16
    private let listener: Int32
    private let fillers: [Int32]

    init() throws {
        listener = WireSocket.make()
        var one: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, 4)
        var address = WireSocket.address(0)
        var count = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = listener
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, count) == 0 && listen(socket, 0) == 0
                    && getsockname(socket, $0, &count) == 0
            }
        }
        guard isListening else { throw WireFailure("listen: \(errno)") }
        port = UInt16(bigEndian: address.sin_port)
        var fillers: [Int32] = []
        for _ in 0..<4 {
            let filler = WireSocket.make()
            _ = fcntl(filler, F_SETFL, O_NONBLOCK)
            _ = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(filler, $0, count)
                }
            }
            fillers.append(filler)
        }
        self.fillers = fillers
    }

    /// Frees the port; later connection attempts are refused.
    func stop() {
        for filler in fillers { close(filler) }
        close(listener)
    }
}
