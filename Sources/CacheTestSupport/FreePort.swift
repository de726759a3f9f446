import Platform
import Synchronization

/// Ports of 127.0.0.1 for servers that are programs of their own and cannot be given port 0.
///
/// They lie below the range from which the kernel takes the ports of clients: no connection of
/// another test gets one before its server does.
package enum FreePort {
    private static let range: Range<UInt32> = 20_000..<32_000
    /// The next port to try; it begins anywhere, because other processes look for ports too.
    private static let following = Atomic(UInt32.random(in: range))

    /// A port that this process has not returned before, and on which no server listens.
    package static func next() throws -> UInt16 {
        for _ in range {
            let number = following.add(1, ordering: .relaxed).oldValue
            let offset = (number - range.lowerBound) % UInt32(range.count)
            let port = UInt16(range.lowerBound + offset)
            if let socket = try? LoopbackSocket.bind(to: port).socket {
                LoopbackSocket.close(socket)
                return port
            }
        }
        throw LoopbackFailure(description: "No port from 20000 to 31999 is free")
    }
}
