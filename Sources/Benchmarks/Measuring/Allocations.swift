import CAllocationCounter

/// Counts of heap allocations, on builds that can count them.
package enum Allocations {
    /// Whether anything counts; without, both counts stay at zero.
    static var areCounted: Bool { ce_allocation_counting_is_available() != 0 }

    /// The number of allocations of this thread so far.
    static var ofThisThread: UInt64 { UInt64(bitPattern: ce_allocation_count()) }

    /// The number of allocations of all threads so far.
    static var ofAllThreads: UInt64 { UInt64(bitPattern: ce_allocation_count_all_threads()) }
}
