import CEngineShims
import Platform
import Synchronization

/// The calling thread's mark that it reads entries it has not retained.
///
/// A reader writes only to its own cache line. It needs no fence if the kernel can run a barrier on
/// every thread for a writer (`membarrier`, as in liburcu's and Folly's asymmetric fences). On other
/// systems a reader executes a full fence.
///
///     reader                          writer
///     enter the mark                  unlink the entry
///     (compiler barrier or fence)     barrier on all threads
///     find, use or retain             wait until every reading that it met has ended
///     leave the mark, releasing       release the entry
///
/// Either the writer sees the reader's mark, or the reader sees that the entry is unlinked.
///
/// Not `Sendable`: a gate belongs to the thread that asked for it.
struct ReaderGate {
    private let record: UnsafeMutableRawPointer

    /// Whether the readers of this process need a fence.
    static let mustFence = !ce_barrier_all_available()

    /// The calling thread's gate, or `nil` if there are more threads than records.
    @inline(__always)
    static var current: ReaderGate? {
        guard let record = ce_reader_current() else { return nil }
        return ReaderGate(record: record)
    }

    /// The thread's number: small, and unique among the living threads.
    @inline(__always)
    var index: Int { Int(ce_reader_index(record)) }

    @inline(__always)
    func enter(_ fences: Bool) {
        let word = Self.word(of: record)
        var mark = ReadingMark(word: word.pointee.load(ordering: .relaxed))
        mark.enter()
        // Releasing, as a writer may see the end of the reading before in this mark alone.
        word.pointee.store(mark.word, ordering: .releasing)
        if fences {
            atomicMemoryFence(ordering: .sequentiallyConsistent)
        } else {
            ce_compiler_barrier()
        }
    }

    @inline(__always)
    func leave() {
        // A retain inside the gate must happen before the gate is left. Without this barrier the
        // compiler moves it behind the store, because a store cannot release an object.
        ce_compiler_barrier()
        let word = Self.word(of: record)
        var mark = ReadingMark(word: word.pointee.load(ordering: .relaxed))
        mark.leave()
        word.pointee.store(mark.word, ordering: .releasing)
    }

    /// Stops the process if the calling thread reads.
    ///
    /// A write asks before it takes any lock: another writer may hold that lock until this thread's
    /// reading ends.
    static func requireOutside() {
        guard let own = ce_reader_current() else { return }
        precondition(
            !mark(of: own).isReading || Mutant.asksForTheGateTooLate.isOn,
            "A closure that reads an entry must not write to the memory"
        )
    }

    /// Returns when no reader can see an entry that was unlinked before the call.
    ///
    /// The calling thread does not read.
    static func waitForReaders() {
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        // Without the barrier a reader's mark may not be visible yet, and its entry would be freed.
        guard mustFence || ce_barrier_all() || Mutant.trustsARefusedBarrier.isOn else {
            let fault =
                "The system refuses membarrier, which it permitted when the process started; "
                + "let the filter of system calls permit it, or install the filter before the start"
            fatalError(fault)
        }
        for index in 0..<ce_reader_records_used() {
            guard let record = ce_reader_at(index) else { continue }
            let met = mark(of: record)
            // A reader stays inside its gate for a look-up and a short closure, and never waits there.
            while met.goesOn(in: mark(of: record)) { sched_yield() }
        }
    }

    private static func mark(of record: UnsafeMutableRawPointer) -> ReadingMark {
        ReadingMark(word: word(of: record).pointee.load(ordering: .acquiring))
    }

    @inline(__always)
    private static func word(
        of record: UnsafeMutableRawPointer
    ) -> UnsafeMutablePointer<Atomic<UInt64>> {
        // The word is the first field of the record, and is accessed only through this function.
        record.assumingMemoryBound(to: Atomic<UInt64>.self)
    }
}
