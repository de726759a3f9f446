/// The queue of accepted changes that are not on disk yet, oldest first.
///
///     free ──push──▶ queued ──take──▶ writing ──finish──▶ free
///                      └──cancel──▶ free
///
/// Invariants:
/// 1. Every queued node is in the list exactly once; no other node is.
/// 2. `bytes` is the sum of the entries' sizes over queued and writing nodes.
/// 3. An entry's node has a number that a place can name: stores are refused before the numbers end.
///    Only removals take higher ones, which are used once. The number of tombstones is bounded by
///    the number of entries that left the index, and so by the device; that of purges by
///    `PurgeTable.tagsMax` while the device fails.
struct WriteQueue: ~Copyable {
    enum State: UInt8, Sendable { case free, queued, writing }

    enum Content: Sendable {
        case entry(Entry, JumboFile?)
        case tombstone
        case purge(PurgeRecord)
    }

    struct Node {
        var state = State.free
        /// Whether an older record of the key may be on disk: if this node fails, a tombstone must
        /// follow.
        var coversOlderRecord = false
        var previous: Int32 = -1
        var next: Int32 = -1
        var sequence: UInt64 = 0
        var hash = KeyHash(placement: 0, identity: 0)
        var content: Content?
        /// The file of an older version, unlinked once this node is written.
        ///
        /// If the process is killed before then, one of the two versions must be on disk.
        var replacedBody: JumboFile?
        var sizeBytes = 0

        var isRemoval: Bool {
            guard let content, case .entry = content else { return content != nil }
            return false
        }

        var isPurge: Bool {
            if case .purge = content { true } else { false }
        }
    }

    /// The older copy of a key, under a node of the queue.
    struct OlderCopy {
        /// Whether an older record may be on disk.
        var isOnDisk: Bool
        var body: JumboFile?
    }

    /// One node handed to the writer.
    struct Taken: Sendable {
        let node: Int
        let sequence: UInt64
        let hash: KeyHash
        let content: Content

        /// Whether the node renews an entry and keeps its body.
        func keeps(_ body: JumboFile) -> Bool {
            if case .entry(_, let own?) = content { own === body } else { false }
        }
    }

    /// The size of the entries that wait together.
    private let bytesMax: Int
    private let oversize: OversizeBudget
    /// The number of nodes that a place can name.
    private let nodesMax: Int
    private var nodes = Slab<Node>(capacity: 64)
    private var firstFree: Int32 = -1
    private var head: Int32 = -1
    private var tail: Int32 = -1
    private(set) var bytes = 0
    /// Removals among the nodes that are queued or being written.
    private(set) var removalCount = 0
    /// Purges among them.
    private(set) var purgeCount = 0
    /// Nodes that are queued or being written.
    private(set) var liveCount = 0

    init(
        bytesMax: Int = .max,
        oversize: OversizeBudget = OversizeBudget(bytesMax: 0),
        nodesMax: Int = RecordPlace.queueNodesMax
    ) {
        self.bytesMax = bytesMax
        self.oversize = oversize
        self.nodesMax = nodesMax
    }

    var isEmpty: Bool { head < 0 }
    var isAtNodeLimit: Bool { nodes.count >= nodesMax - 1 && firstFree < 0 }

    /// Whether there is room for an entry of that size: the caller then pushes it, or gives the room
    /// back.
    ///
    /// An entry that is larger than the queue waits alone in it.
    func takeRoom(for sizeBytes: Int) -> Bool {
        if isAtNodeLimit { return false }
        if isOversize(sizeBytes) { return bytes == 0 && oversize.take(sizeBytes) }
        return bytes + sizeBytes <= bytesMax
    }

    func giveBackRoom(for sizeBytes: Int) {
        if isOversize(sizeBytes) { oversize.giveBack(sizeBytes) }
    }

    private func isOversize(_ sizeBytes: Int) -> Bool { sizeBytes > bytesMax }

    /// The sequence number of the oldest node in the list.
    var firstSequence: UInt64? { head < 0 ? nil : nodes[Int(head)].sequence }

    subscript(node: Int) -> Node {
        _read { yield nodes[node] }
    }

    mutating func push(
        _ content: Content,
        hash: KeyHash,
        sequence: UInt64,
        sizeBytes: Int,
        coversOlderRecord: Bool
    ) -> Int {
        var index = Int(firstFree)
        if index >= 0 {
            firstFree = nodes[index].next
        } else {
            index = nodes.count
            nodes.append(Node())
        }
        assert(nodes[index].state == .free)
        nodes[index] = Node(
            state: .queued,
            coversOlderRecord: coversOlderRecord,
            sequence: sequence,
            hash: hash,
            content: content,
            sizeBytes: sizeBytes
        )
        bytes += sizeBytes
        liveCount += 1
        if nodes[index].isRemoval { removalCount += 1 }
        if nodes[index].isPurge { purgeCount += 1 }
        assert(index < nodesMax || nodes[index].isRemoval, "3: a place can name the node")
        link(index, after: tail, before: -1)
        return index
    }

    mutating func setOlder(_ older: OlderCopy, under node: Int) {
        nodes[node].coversOlderRecord = older.isOnDisk
        nodes[node].replacedBody = older.body
    }

    mutating func setReplacedBody(_ body: JumboFile, under node: Int) {
        nodes[node].replacedBody?.doom()
        nodes[node].replacedBody = body
    }

    /// Cancels a node that is not being written, and returns the copy it covered.
    mutating func cancel(_ node: Int) -> OlderCopy {
        precondition(nodes[node].state == .queued)
        let older = OlderCopy(
            isOnDisk: nodes[node].coversOlderRecord,
            body: nodes[node].replacedBody
        )
        assert(!nodes[node].isRemoval, "a removal is written in any case")
        giveBackBytes(of: node)
        liveCount -= 1
        assert(liveCount >= 0)
        unlink(node)
        release(node)
        return older
    }

    /// Cancels every entry that is not being written, and returns the copies that they covered.
    mutating func cancelEntries() -> [OlderCopy] {
        var older: [OlderCopy] = []
        var at = head
        while at >= 0 {
            let node = Int(at)
            at = nodes[node].next
            if nodes[node].state == .queued, !nodes[node].isRemoval { older.append(cancel(node)) }
        }
        return older
    }

    /// Hands out the oldest nodes, at least one, until `bytesMax` is reached.
    mutating func take(bytesMax: Int) -> [Taken] {
        var taken: [Taken] = []
        var total = 0
        while head >= 0, taken.isEmpty || total < bytesMax {
            let index = Int(head)
            unlink(index)
            guard nodes[index].state == .queued, let content = nodes[index].content else {
                preconditionFailure("1: list")
            }
            nodes[index].state = .writing
            total += nodes[index].sizeBytes + EntryHead.sizeBytes
            taken.append(
                Taken(
                    node: index,
                    sequence: nodes[index].sequence,
                    hash: nodes[index].hash,
                    content: content
                )
            )
        }
        return taken
    }

    /// Ends the writing of a node, whether or not it succeeded; returns the body that it replaced.
    mutating func finish(_ node: Int) -> JumboFile? {
        precondition(nodes[node].state == .writing)
        let replaced = nodes[node].replacedBody
        giveBackBytes(of: node)
        liveCount -= 1
        if nodes[node].isRemoval { removalCount -= 1 }
        if nodes[node].isPurge { purgeCount -= 1 }
        assert(liveCount >= 0 && removalCount >= 0)
        release(node)
        return replaced
    }

    /// Puts nodes that could not be written back into the list, in their old order.
    ///
    /// The list is younger, except for nodes of the same batch that were put back before.
    mutating func putBack(_ taken: [Int]) {
        var (last, next) = (Int32(-1), head)
        for node in taken {
            precondition(nodes[node].state == .writing)
            assert(nodes[node].next < 0, "a node that is written has left the list")
            while next >= 0, nodes[Int(next)].sequence < nodes[node].sequence {
                (last, next) = (next, nodes[Int(next)].next)
            }
            nodes[node].state = .queued
            link(node, after: last, before: next)
            last = Int32(node)
        }
    }

    private mutating func link(_ node: Int, after previous: Int32, before next: Int32) {
        nodes[node].previous = previous
        nodes[node].next = next
        if previous < 0 { head = Int32(node) } else { nodes[Int(previous)].next = Int32(node) }
        if next < 0 { tail = Int32(node) } else { nodes[Int(next)].previous = Int32(node) }
    }

    private mutating func unlink(_ node: Int) {
        let (previous, next) = (nodes[node].previous, nodes[node].next)
        if previous < 0 { head = next } else { nodes[Int(previous)].next = next }
        if next < 0 { tail = previous } else { nodes[Int(next)].previous = previous }
        nodes[node].previous = -1
        nodes[node].next = -1
    }

    private mutating func giveBackBytes(of node: Int) {
        giveBackRoom(for: nodes[node].sizeBytes)
        bytes -= nodes[node].sizeBytes
        nodes[node].sizeBytes = 0
        assert(bytes >= 0)
    }

    private mutating func release(_ node: Int) {
        nodes[node] = Node()
        guard node < nodesMax, !Mutant.usesEachNodeOnce.isOn else { return }
        nodes[node].next = firstFree
        firstFree = Int32(node)
    }

    #if ENGINE_CHECKS
        func checkInvariants() {
            var (listed, last, at) = (0, Int32(-1), head)
            while at >= 0 {
                precondition(nodes[Int(at)].state == .queued, "1: list")
                precondition(nodes[Int(at)].previous == last, "1: order")
                (listed, last, at) = (listed + 1, at, nodes[Int(at)].next)
            }
            precondition(last == tail, "1: tail")
            var (waiting, sum, live) = (0, 0, 0)
            for index in 0..<nodes.count {
                let node = nodes[index]
                if node.state == .queued { waiting += 1 }
                if node.state == .queued || node.state == .writing {
                    sum += node.sizeBytes
                    live += 1
                }
            }
            precondition(waiting == listed, "1: list")
            precondition(sum == bytes && live == liveCount, "2: bytes")
            for index in 0..<nodes.count where nodes[index].state != .free {
                let node = nodes[index]
                precondition(index < nodesMax || node.isRemoval, "3: limit")
            }
        }
    #endif
}
