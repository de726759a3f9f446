import CacheEngine

/// A clock whose time is constant.
struct FixedClock: CacheClock {
    var nowSeconds: Int64
    var monotonicNanoseconds: UInt64 { 0 }
    func sleep(nanoseconds: UInt64) async throws {}
}
