import CacheEngine
import NIOBridge
import Vapor

extension Request {
    /// Logs an error of the cache, and returns the one that reports it to the client.
    ///
    /// Only the log gets the detail, which may name the hosts and ports behind this server.
    func abort(after error: CacheError) -> Abort {
        let status = error.gatewayStatus
        logger.log(
            level: status < 500 ? .debug : .warning,
            "The cache has no response",
            metadata: ["error": "\(error)"]
        )
        return Abort(.init(statusCode: status), reason: error.code.description)
    }
}
