import Synchronization

/// The permission of one attempt to store what it brings.
///
/// An attempt that was given up, or whose key was handed to a newer flight, may come home late; its
/// licence is revoked by then, and the store refuses it.
final class FlightLicence: Sendable {
    private let revoked = Atomic(false)

    var isValid: Bool { !revoked.load(ordering: .acquiring) }

    func revoke() { revoked.store(true, ordering: .releasing) }
}
