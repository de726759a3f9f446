/// The entries that one hold of a shard's lock unlinked: one reference for each.
///
/// `ShardCommons.retire` takes the references over once the lock is free.
struct UnlinkedBatch {
    private(set) var references: [Unmanaged<ByteStorage>] = []
    private(set) var chargeBytes = 0

    var count: Int { references.count }

    mutating func add(_ reference: Unmanaged<ByteStorage>) {
        references.append(reference)
        chargeBytes += Entry(unchecked: reference.takeUnretainedValue()).chargeBytes
    }
}
