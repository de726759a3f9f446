import Synchronization

/// A few numbers that many threads add to, each where no other thread writes.
///
/// Each of the first threads has cache lines of its own and adds without an atomic read-modify-write;
/// all later ones share the last.
///
/// `@unchecked Sendable`: the slab is allocated once, lives as long as the object and holds only atomics.
/// Nothing is lost to the plain additions: a number of `ReaderGate` belongs to one thread at a time, and
/// passes to the next under a lock.
final class ThreadCounts: @unchecked Sendable {
    private static let stripeCount = 64

    private let cells: UnsafeMutablePointer<Atomic<Int>>
    /// Cells from one stripe to the next: whole cache lines.
    private let stride: Int

    init(fieldCount: Int) {
        stride = (fieldCount + 7) / 8 * 8
        let sizeBytes = Self.stripeCount * stride * 8
        let raw = UnsafeMutableRawPointer.allocate(byteCount: sizeBytes, alignment: 64)
        raw.initializeMemory(as: UInt8.self, repeating: 0, count: sizeBytes)
        cells = raw.assumingMemoryBound(to: Atomic<Int>.self)
    }

    deinit { UnsafeMutableRawPointer(cells).deallocate() }

    var sizeBytes: Int { Self.stripeCount * stride * 8 }

    /// Adds for the calling thread, whose number in `ReaderGate` is `thread`; nil when it has none.
    @inline(__always)
    func add(_ amount: Int, to field: Int, by thread: Int?) {
        let last = Self.stripeCount - 1
        if let thread, thread < last {
            let cell = cells + (thread &* stride &+ field)
            // Only this thread writes here.
            let count = cell.pointee.load(ordering: .relaxed)
            cell.pointee.store(count &+ amount, ordering: .relaxed)
        } else {
            (cells + (last &* stride &+ field)).pointee.wrappingAdd(amount, ordering: .relaxed)
        }
    }

    func sum(_ field: Int) -> Int {
        (0..<Self.stripeCount).reduce(0) { sum, stripe in
            sum + cells[stripe * stride + field].load(ordering: .relaxed)
        }
    }
}
