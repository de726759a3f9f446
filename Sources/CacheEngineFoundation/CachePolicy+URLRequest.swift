public import CacheEngine

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

extension CachePolicy {
    /// The policy that a request of the URL loading system names.
    ///
    /// By case, not by number: the numbers differ between Darwin and Linux.
    public init(_ policy: URLRequest.CachePolicy) {
        switch policy {
        case .useProtocolCachePolicy: self = .useProtocolCachePolicy
        case .reloadIgnoringLocalCacheData: self = .reloadIgnoringLocalCacheData
        case .reloadIgnoringLocalAndRemoteCacheData: self = .reloadIgnoringLocalAndRemoteCacheData
        case .returnCacheDataElseLoad: self = .returnCacheDataElseLoad
        case .returnCacheDataDontLoad: self = .returnCacheDataDontLoad
        case .reloadRevalidatingCacheData: self = .reloadRevalidatingCacheData
        @unknown default: self = .useProtocolCachePolicy
        }
    }
}

extension URLRequest.CachePolicy {
    /// The named policy at that point, or nil where the URL loading system has no name for it.
    public init?(_ policy: CachePolicy) {
        if policy == .useProtocolCachePolicy {
            self = .useProtocolCachePolicy
        } else if policy == .reloadIgnoringLocalCacheData {
            self = .reloadIgnoringLocalCacheData
        } else if policy == .reloadIgnoringLocalAndRemoteCacheData {
            self = .reloadIgnoringLocalAndRemoteCacheData
        } else if policy == .returnCacheDataElseLoad {
            self = .returnCacheDataElseLoad
        } else if policy == .returnCacheDataDontLoad {
            self = .returnCacheDataDontLoad
        } else if policy == .reloadRevalidatingCacheData {
            self = .reloadRevalidatingCacheData
        } else {
            return nil
        }
    }
}
