public import CacheEngine
public import Foundation

extension CacheError: LocalizedError {
    /// The description of the error, as `localizedDescription` shows it.
    public var errorDescription: String? { description }
}
