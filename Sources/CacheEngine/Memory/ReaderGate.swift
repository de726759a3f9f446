import CEngineShims
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The calling thread's sign that it is reading entries it does not hold.
///
/// Readers write only to their own cache line, and fence nothing where the kernel can run a barrier
/// on every thread on a writer's behalf (`membarrier`, as in liburcu's and Folly's asymmetric
/// fences). Elsewhere a reader pays for a full fence.
///
///     reader                          writer
///     depth = 1                       unlink the entry
///     (compiler barrier or fence)     barrier on all threads
///     find, use or retain             wait until every depth that is not 0 has changed
///     depth = 0, releasing            release the entry
///
/// Either the reader's `depth` is seen by the writer, or the reader sees the entry unlinked.
///
/// `@unchecked Sendable` is not claimed: a gate belongs to the thread that asked for it.
struct ReaderGate {
    private let record: UnsafeMutableRawPointer

    private static let fencesReaders = !ce_barrier_all_available()

    /// The calling thread's gate, or nil when there are more threads than records.
    @inline(__always)
    static var current: ReaderGate? {
        guard let record = ce_reader_current() else { return nil }
        return ReaderGate(record: record)
    }

    /// The thread's number, small and its own.
    @inline(__always)
    var index: Int { Int(ce_reader_index(record)) }

    @inline(__always)
    func enter(_ fences: Bool) {
        let depth = Self.depth(of: record)
        depth.pointee.store(depth.pointee.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
        if fences {
            atomicMemoryFence(ordering: .sequentiallyConsistent)
        } else {
            ce_compiler_barrier()
        }
    }

    @inline(__always)
    func leave() {
        // What was retained inside is retained before leaving: the compiler knows that a store
        // releases nothing, and would put the retain off until after it.
        ce_compiler_barrier()
        let depth = Self.depth(of: record)
        depth.pointee.store(depth.pointee.load(ordering: .relaxed) &- 1, ordering: .releasing)
    }

    /// Whether readers of this process must fence.
    static var mustFence: Bool { fencesReaders }

    /// Returns when no reader can still see what was unlinked before the call.
    static func waitForReaders() {
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        if !fencesReaders { ce_barrier_all() }
        let own = ce_reader_current()
        for index in 0..<ce_reader_records_used() {
            guard let record = ce_reader_at(index) else { continue }
            let depth = depth(of: record)
            if record == own {
                precondition(
                    depth.pointee.load(ordering: .relaxed) == 0,
                    "A closure that reads an entry must not write to the memory"
                )
                continue
            }
            // A reader holds its gate for a look-up and a short closure, never across a wait.
            while depth.pointee.load(ordering: .acquiring) != 0 { sched_yield() }
        }
    }

    @inline(__always)
    private static func depth(
        of record: UnsafeMutableRawPointer
    ) -> UnsafeMutablePointer<Atomic<UInt64>> {
        // `depth` is the record's first field, and is accessed only through this.
        record.assumingMemoryBound(to: Atomic<UInt64>.self)
    }
}
