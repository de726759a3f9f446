#if canImport(FoundationNetworking)
    internal import CacheEngine
    internal import Foundation
    internal import FoundationNetworking

    /// The errors that a load through a cache reports, with the codes of the URL loading system.
    enum ProtocolFailure {
        static let unknownFoundation = failure(
            .unknown,
            "This version of Foundation does not show the tasks of URLSession to "
                + "CachingURLProtocol; use EngineURLCache"
        )

        static let cacheIsGone = failure(
            .unknown,
            "The session has lost its cache: keep the urlCache that load(through:) sets, or call "
                + "load(through:) last"
        )

        /// The error for a failure of the cache or of its origin.
        static func urlError(_ error: any Error, url: URL?) -> URLError {
            if let error = error as? URLError { return completed(error, url) }
            guard let error = error as? CacheError else {
                return failure(.networkConnectionLost, PlainText.excerpt("\(error)"), url)
            }
            let code = SessionExchange.originalCode(of: error) ?? code(error.code)
            return failure(code, error.detail, url, underlying: error)
        }

        private static func code(_ code: CacheError.Code) -> URLError.Code {
            switch code {
            case .notCached: .resourceUnavailable
            case .originUnreachable: .cannotConnectToHost
            case .originTimedOut, .deadlineExceeded: .timedOut
            case .originFailed, .bodyTruncated: .networkConnectionLost
            case .originMisbehaved: .badServerResponse
            case .requestInvalid: .badURL
            case .bodyTooLarge, .readerTooSlow: .dataLengthExceedsMaximum
            default: .unknown
            }
        }

        private static func completed(_ error: URLError, _ url: URL?) -> URLError {
            failure(error.code, error.localizedDescription, url)
        }

        private static func failure(
            _ code: URLError.Code,
            _ text: String,
            _ url: URL? = nil,
            underlying: CacheError? = nil
        ) -> URLError {
            var info: [String: Any] = [NSLocalizedDescriptionKey: text]
            if let underlying { info[NSUnderlyingErrorKey] = underlying }
            if let url { info[NSURLErrorFailingURLErrorKey] = url }
            return URLError(code, userInfo: info)
        }
    }
#endif
