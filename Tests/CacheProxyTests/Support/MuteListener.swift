import Foundation

/// A port with a full connection queue: the system silently drops every further attempt.
final class MuteListener: Sendable {
    let port: UInt16
    private let listener: Int32
    private let fillers: [Int32]

    init() throws {
        (listener, port) = try WireSocket.listening(waiting: 0)
        var address = WireSocket.address(port)
        let count = socklen_t(MemoryLayout<sockaddr_in>.size)
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
