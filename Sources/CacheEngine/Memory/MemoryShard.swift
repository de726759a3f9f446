import Synchronization

/// One slice of the key space: its entries, its queues and the lock that guards them.
package actor MemoryShard {
    /// Guards everything the shard holds; nothing is awaited or freed under it.
    nonisolated let table: Mutex<ShardTable>

    init(capacityBytes: Int, entrySizeBytesMax: Int, pinnedBytesMax: Int) {
        table = Mutex(
            ShardTable(
                capacityBytes: capacityBytes,
                entrySizeBytesMax: entrySizeBytesMax,
                pinnedBytesMax: pinnedBytesMax
            )
        )
    }

    /// Removes what has expired, a few entries per lock hold.
    package func sweepExpired(nowSeconds: UInt32) -> RemovalCount {
        removeEach { $0.isExpired(nowSeconds: nowSeconds) }
    }

    /// Removes every entry that `isMeant`, at most `batchMax` entries looked at per lock hold.
    nonisolated func removeEach(_ isMeant: (Entry) -> Bool) -> RemovalCount {
        let keys = table.withLock { $0.allHashes }
        var count = RemovalCount()
        var start = 0
        while start < keys.count {
            let batch = keys[start..<min(start + Self.batchMax, keys.count)]
            let removed = table.withLock { $0.remove(batch, if: isMeant) }
            for entry in removed {
                count.entries += 1
                count.bytes += entry.sizeBytes
            }
            start += Self.batchMax
        }
        return count
    }

    /// Entries looked at while the lock is held, so that a reader never waits long.
    static let batchMax = 256
}

extension EntryHead {
    /// Whether `scope` concerns the entry this head belongs to, tags aside.
    func isCovered(by scope: RemovalScope) -> Bool {
        switch scope {
        case .everything: true
        case .tag: false
        case .storageClass(let storageClass): self.storageClass == storageClass
        case .storedAfter(let seconds): Int64(createdSeconds) >= seconds
        case .storedBefore(let seconds): Int64(createdSeconds) < seconds
        }
    }
}

extension Entry {
    func isExpired(nowSeconds: UInt32) -> Bool { head.isExpired(nowSeconds: nowSeconds) }

    /// Whether `scope` concerns the entry.
    func isCovered(by scope: RemovalScope) -> Bool {
        guard case .tag(var tag) = scope else { return head.isCovered(by: scope) }
        return tag.withUTF8 { tag in
            withTags { TagList.contains(UnsafeRawBufferPointer(tag), in: $0) }
        }
    }
}
