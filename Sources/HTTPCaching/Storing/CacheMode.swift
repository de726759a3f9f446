/// Whether the cache belongs to one user or is shared by many (RFC 9111 §1).
public enum CacheMode: UInt8, Hashable, Sendable {
    case shared
    case `private`
}
