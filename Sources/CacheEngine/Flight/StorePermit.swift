import Synchronization

/// The permission of one attempt to store its response.
///
/// An attempt that was given up, or whose key passed to a newer flight, may finish late. Its
/// permit is revoked by then, and the store refuses the response.
final class StorePermit: Sendable {
    private let revoked = Atomic(false)

    var isValid: Bool { !revoked.load(ordering: .acquiring) }

    func revoke() { revoked.store(true, ordering: .releasing) }
}
