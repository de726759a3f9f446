import Synchronization

/// An object, as long as something else keeps it.
package final class WeakReference<Object: AnyObject & Sendable>: Sendable {
    private struct State: Sendable { weak var object: Object? }
    private let state = Mutex(State())

    package init() {}

    package func note(_ object: Object) { state.withLock { $0.object = object } }

    /// Whether nothing keeps the object.
    package var isReleased: Bool { state.withLock { $0.object == nil } }
}
