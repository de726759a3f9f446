public import CacheEngine
public import Foundation

extension CacheInfo {
    /// The time at which the response was stored; `nil` if it is not a stored response.
    public var storedAt: Date? {
        storedAtSeconds.map { Date(timeIntervalSince1970: TimeInterval($0)) }
    }
}
