import CacheEngine
import CacheTestSupport

/// The clock of one machine, which differs from the true one by a constant.
struct MachineClock: CacheClock {
    let world: TestClock
    let offsetSeconds: Int64
    let startNanoseconds: UInt64

    var nowSeconds: Int64 { world.nowSeconds + offsetSeconds }
    var monotonicNanoseconds: UInt64 { world.monotonicNanoseconds + startNanoseconds }
    func sleep(nanoseconds: UInt64) async throws { try await world.sleep(nanoseconds: nanoseconds) }
}
