extension HTTPCache {
    /// The options for a response that the application stores itself.
    public struct ManualStoreOptions: Sendable {
        /// The tags of the entry, by which it can be removed.
        public var tags: [String] = []
        /// The time that the response stays fresh; `nil` means that its own fields decide.
        public var lifetime: Duration?
        /// The storage class, which limits the life of the entry apart from HTTP's rules.
        ///
        /// `CachingRules.storageClass`, the default of fetched responses, is not used.
        public var storageClass = StorageClass.permanent
        /// The tiers that may keep the entry.
        public var place = StoragePlace.everywhere
        /// Bytes kept beside the entry, and returned with every hit.
        public var userInfo: ByteChunk?

        /// Creates options for a permanent entry whose own fields decide its lifetime.
        public init() {}
    }
}
