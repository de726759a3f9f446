import CEngineShims
import Synchronization

/// Counters that many threads increment without contention.
///
/// Each thread with a number of `ReaderGate` has its own stripe of cache lines and adds without an
/// atomic read-modify-write. Stripes are allocated in blocks: the first with the object, each other
/// when the first of its threads counts. Threads without a number share one stripe.
///
/// `@unchecked Sendable`: the blocks live as long as the object and hold only atomics. The plain
/// additions lose nothing: a number of `ReaderGate` belongs to one thread at a time, and passes to
/// the next thread under a lock.
final class ThreadCounts: @unchecked Sendable {
    private typealias Cells = UnsafeMutablePointer<Atomic<Int>>

    private static let blockStripes = 64
    private static let laterBlocks = Int(CE_READER_RECORDS_MAX) / blockStripes - 1
    /// Two cache lines, because processors fetch lines in pairs.
    private static let stripeAlignment = 128

    /// The stripes of the first threads, followed by that of the threads without a number.
    private let first: Cells
    private let later: UnsafeMutablePointer<Atomic<UnsafeMutableRawPointer?>>
    /// The number of cells per stripe, a multiple of two cache lines.
    private let stride: Int

    init(fieldCount: Int) {
        let cells = Self.stripeAlignment / 8
        stride = (fieldCount + cells - 1) / cells * cells
        first = Self.allocate(stripes: Self.blockStripes + 1, stride).assumingMemoryBound(
            to: Atomic<Int>.self
        )
        later = .allocate(capacity: Self.laterBlocks)
        for block in 0..<Self.laterBlocks { (later + block).initialize(to: Atomic(nil)) }
    }

    deinit {
        for block in 0..<Self.laterBlocks {
            (later + block).pointee.load(ordering: .acquiring)?.deallocate()
        }
        later.deallocate()
        UnsafeMutableRawPointer(first).deallocate()
    }

    /// The bytes allocated with the object.
    var sizeBytes: Int { ((Self.blockStripes + 1) * stride + Self.laterBlocks) * 8 }

    /// Adds for the calling thread, whose number in `ReaderGate` is `thread`, if it has one.
    @inline(__always)
    func add(_ amount: Int, to field: Int, by thread: Int?) {
        guard let thread else {
            (first + (Self.blockStripes &* stride &+ field)).pointee
                .wrappingAdd(amount, ordering: .relaxed)
            return
        }
        let cell =
            thread < Self.blockStripes
            ? first + (thread &* stride &+ field) : laterCell(field, thread)
        // Only this thread writes this cell.
        let count = cell.pointee.load(ordering: .relaxed)
        cell.pointee.store(count &+ amount, ordering: .relaxed)
    }

    func sum(_ field: Int) -> Int {
        var sum = Self.sum(field, of: first, stripes: Self.blockStripes + 1, stride)
        for block in 0..<Self.laterBlocks {
            guard let base = (later + block).pointee.load(ordering: .acquiring) else { continue }
            let cells = base.assumingMemoryBound(to: Atomic<Int>.self)
            sum &+= Self.sum(field, of: cells, stripes: Self.blockStripes, stride)
        }
        return sum
    }

    private static func sum(_ field: Int, of cells: Cells, stripes: Int, _ stride: Int) -> Int {
        (0..<stripes).reduce(0) { $0 &+ cells[$1 * stride + field].load(ordering: .relaxed) }
    }

    /// The cell of a thread outside the first block.
    @inline(never)
    private func laterCell(_ field: Int, _ thread: Int) -> Cells {
        let place = later + (thread / Self.blockStripes - 1)
        let base = place.pointee.load(ordering: .acquiring) ?? addBlock(at: place)
        let stripe = thread % Self.blockStripes
        return base.assumingMemoryBound(to: Atomic<Int>.self) + (stripe * stride + field)
    }

    private func addBlock(
        at place: UnsafeMutablePointer<Atomic<UnsafeMutableRawPointer?>>
    ) -> UnsafeMutableRawPointer {
        let block = Self.allocate(stripes: Self.blockStripes, stride)
        let (exchanged, original) = place.pointee.compareExchange(
            expected: nil,
            desired: block,
            ordering: .acquiringAndReleasing
        )
        guard !exchanged, let original else { return block }
        // Another thread of the block was first.
        block.deallocate()
        return original
    }

    private static func allocate(stripes: Int, _ stride: Int) -> UnsafeMutableRawPointer {
        let sizeBytes = stripes * stride * 8
        let raw = UnsafeMutableRawPointer.allocate(
            byteCount: sizeBytes,
            alignment: stripeAlignment
        )
        // Zero bytes are atomics that hold zero.
        raw.initializeMemory(as: UInt8.self, repeating: 0, count: sizeBytes)
        return raw
    }
}
