import CacheTestSupport
import Dispatch
import Synchronization

/// A device whose reads or writes hang, from a stop until it goes on; it hangs once.
final class HangingDevice: Sendable {
    let files = FaultyFileSystem(seed: 1)
    private let gate = DispatchSemaphore(value: 0)
    private let isStopped = Atomic(false)
    private let spared = Atomic(0)
    private let held = Atomic(0)

    /// The calls that hang.
    var heldCount: Int { held.load(ordering: .acquiring) }

    func stopReads() {
        isStopped.store(true, ordering: .releasing)
        files.stopReads { [weak self] in self?.hold() }
    }

    /// Lets writes hang, after `count` more that do not.
    func stopWrites(after count: Int = 0) {
        spared.store(count, ordering: .releasing)
        isStopped.store(true, ordering: .releasing)
        files.stopWrites { [weak self] in self?.hold() }
    }

    /// Ends the calls that hang; each of them then does its work.
    func goOn() {
        guard isStopped.exchange(false, ordering: .acquiringAndReleasing) else { return }
        files.stopReads(nil)
        files.stopWrites(nil)
        gate.signal()
    }

    private func hold() {
        let left = spared.wrappingSubtract(1, ordering: .acquiringAndReleasing).oldValue
        guard left <= 0, isStopped.load(ordering: .acquiring) else { return }
        held.wrappingAdd(1, ordering: .acquiringAndReleasing)
        gate.wait()
        // For the next one.
        gate.signal()
        held.wrappingSubtract(1, ordering: .acquiringAndReleasing)
    }
}
