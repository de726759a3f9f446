extension Entry {
    func isExpired(nowSeconds: UInt32) -> Bool { head.isExpired(nowSeconds: nowSeconds) }

    /// Whether the entry is in `scope`.
    func isCovered(by scope: RemovalScope) -> Bool {
        switch scope {
        case .everything: return true
        case .storageClass(let storageClass): return head.storageClass == storageClass
        case .storedAfter(let seconds):
            return Int64(head.createdSeconds) >= min(seconds, Int64(EntryHead.secondsMax))
        case .storedBefore(let seconds): return Int64(head.createdSeconds) < seconds
        case .tag(var tag):
            return tag.withUTF8 { tag in
                withTags { TagList.contains(UnsafeRawBufferPointer(tag), in: $0) }
            }
        }
    }
}
