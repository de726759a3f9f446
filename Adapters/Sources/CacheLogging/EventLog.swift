public import CacheEngine
public import Logging

/// Writes the events of a cache to a log, one line each.
///
///     configuration.hooks.onEvent = EventLog(logger).record
///
/// A failure of the origin, of a hook or of a refresh is a warning, a failure of the storage or of
/// the fleet's log an error. All else has the level `debug`, which costs little if it is not logged.
public struct EventLog: Sendable {
    private let logger: Logger

    /// Creates a log that writes to `logger`.
    public init(_ logger: Logger) { self.logger = logger }

    /// Writes the line of `event`.
    @Sendable public func record(_ event: CacheEvent) {
        switch event {
        case .answered(let answer):
            logger.debug("Answered", metadata: Self.metadata(of: answer))
        case .refused(let reason, let request):
            logger.debug("Not stored", metadata: request.logged(["reason": "\(reason)"]))
        case .escaped(let reason, let request):
            logger.debug("Left a shared fetch", metadata: request.logged(["reason": "\(reason)"]))
        case .refreshed(succeeded: true, let request):
            logger.debug("Refreshed", metadata: request.logged())
        case .refreshed(succeeded: false, let request):
            logger.warning("Not refreshed", metadata: request.logged())
        case .originFailed(let error, let request):
            logger.warning("The origin failed", metadata: request.logged(["error": "\(error)"]))
        case .hookFailed(let error, let request):
            logger.warning("A hook failed", metadata: request.logged(["error": "\(error)"]))
        case .storageFailed(let error):
            logger.error("The storage failed", metadata: ["error": "\(error)"])
        case .fleetFailed(let error):
            logger.error("The fleet's log failed", metadata: ["error": "\(error)"])
        case .fleetLinked:
            logger.notice("The fleet's log is read")
        }
    }

    private static func metadata(of answer: CacheEvent.Answer) -> Logger.Metadata {
        var metadata = answer.request.logged([
            "status": "\(answer.status)",
            "source": "\(answer.source.rawValue)",
            "duration": "\(answer.duration)",
        ])
        if let bodyCount = answer.bodyCount { metadata["bytes"] = "\(bodyCount)" }
        return metadata
    }
}

extension CacheRequest {
    /// The metadata that name the request, and `others`.
    fileprivate func logged(_ others: Logger.Metadata = [:]) -> Logger.Metadata {
        var metadata = others
        metadata["method"] = "\(method.name)"
        metadata["url"] = "\(urlWithoutSecrets)"
        return metadata
    }
}
