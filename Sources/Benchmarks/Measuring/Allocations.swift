import CAllocationCounter

/// Heap allocations made, where they can be counted.
package enum Allocations {
    /// Whether this build counts them; under a sanitizer it does not.
    package static var areCounted: Bool { ce_allocation_counting_is_available() != 0 }

    /// Those of this thread so far.
    static var ofThisThread: UInt64 { UInt64(bitPattern: ce_allocation_count()) }

    /// Those of all threads so far.
    static var ofAllThreads: UInt64 { UInt64(bitPattern: ce_allocation_count_all_threads()) }
}
