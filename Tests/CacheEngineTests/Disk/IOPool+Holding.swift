import Dispatch
import Testing

@testable import CacheEngine

extension IOPool {
    /// Keeps a thread from now on until `gate` opens, as a device that hangs does.
    ///
    /// Submitting a job is not enough: the pool's lanes come before its jobs.
    func hold(until gate: DispatchSemaphore) async throws {
        let isHeld = Race<Void>()
        let isTaken = submit {
            isHeld.finish(.success(()))
            gate.wait()
        }
        #expect(isTaken)
        try await isHeld.result()
    }
}
