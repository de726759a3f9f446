/// The constant settings of one shard.
struct ShardSettings: Sendable {
    let number: Int
    let directory: String
    let storeID: KeyHash
    let hasher: KeyHasher
    let segmentBytes: Int
    let queueBytesMax: Int
    let batchBytes: Int
    let flushNanoseconds: UInt64
    let entryBytesMax: Int
    let inlineBodyBytesMax: Int
    let durability: DiskConfiguration.Durability
    /// The time that coarse expiries count from.
    let baseSeconds: UInt32

    /// The maximum size of one record in the log.
    var recordBytesMax: Int { min(segmentBytes / 2, SizeClass.bytesMax) }
}
