import Synchronization

/// An object, as long as something else keeps it.
final class WeakReference<Object: AnyObject & Sendable>: Sendable {
    private struct State: Sendable { weak var object: Object? }
    private let state = Mutex(State())

    init() {}

    convenience init(_ object: Object) {
        self.init()
        note(object)
    }

    func note(_ object: Object) { state.withLock { $0.object = object } }

    var isReleased: Bool { state.withLock { $0.object == nil } }
}
