public import CacheEngine

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

extension CachePolicy {
    /// Creates the policy that a request of the URL loading system names.
    ///
    /// The cases are mapped by name, because their numbers differ between Darwin and Linux.
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
    /// Creates the case that corresponds to a policy; `nil` if there is no such case.
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
