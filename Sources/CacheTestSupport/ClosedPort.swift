/// A port of 127.0.0.1 that refuses every connection.
///
/// The process holds the port to its end. The port of a stopped server is merely free: the system
/// may give it to another test's server, which then answers.
package enum ClosedPort {
    /// The number of the port.
    package static let number: UInt16 = {
        do {
            return try LoopbackSocket.bind().port
        } catch {
            preconditionFailure("no port: \(error)")
        }
    }()
}
