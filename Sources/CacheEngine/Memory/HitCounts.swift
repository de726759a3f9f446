import Synchronization

/// Hits and misses, counted where no other thread writes.
///
/// Each of the first threads has a cache line of its own and adds without an atomic read-modify-
/// write; all later ones share the last.
///
/// `@unchecked Sendable`: the slab is allocated once and holds only atomics.
final class HitCounts: @unchecked Sendable {
    private static let stripeCount = 64
    /// Words from one stripe to the next: a cache line.
    private static let stride = 8

    private let cells: UnsafeMutablePointer<Atomic<UInt64>>

    static let sizeBytes = stripeCount * stride * 8

    init() {
        let raw = UnsafeMutableRawPointer.allocate(byteCount: Self.sizeBytes, alignment: 64)
        raw.initializeMemory(as: UInt8.self, repeating: 0, count: Self.sizeBytes)
        cells = raw.assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    deinit { UnsafeMutableRawPointer(cells).deallocate() }

    @inline(__always)
    func countHit(by thread: Int) { add(to: 0, by: thread) }

    @inline(__always)
    func countMiss(by thread: Int) { add(to: 1, by: thread) }

    var sum: (hits: Int, misses: Int) {
        var sum = (hits: 0, misses: 0)
        for stripe in 0..<Self.stripeCount {
            let cell = cells + stripe * Self.stride
            sum.hits += Int(cell.pointee.load(ordering: .relaxed))
            sum.misses += Int((cell + 1).pointee.load(ordering: .relaxed))
        }
        return sum
    }

    @inline(__always)
    private func add(to field: Int, by thread: Int) {
        if thread < Self.stripeCount - 1 {
            let cell = cells + thread * Self.stride + field
            // Only this thread writes here.
            let count = cell.pointee.load(ordering: .relaxed)
            cell.pointee.store(count &+ 1, ordering: .relaxed)
        } else {
            let cell = cells + (Self.stripeCount - 1) * Self.stride + field
            cell.pointee.wrappingAdd(1, ordering: .relaxed)
        }
    }
}
