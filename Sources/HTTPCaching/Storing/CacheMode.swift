/// Whose cache this is (RFC 9111 §1): one user's, or one that many users share.
package enum CacheMode: UInt8, Hashable, Sendable {
    case shared
    case `private`
}
