/// First-in-first-out queues of slots, linked through one slab.
///
/// Invariants:
/// 1. A slot is in at most one queue, the one `queueOf` names; `noQueue` says none.
/// 2. `tailStamps[q]` is the stamp of the oldest slot of queue `q`, infinite when it is empty.
///
/// Not `Copyable`: it owns its slab. Queues are few and their heads lie in a row, so that finding
/// the least stamp of all tails touches a few cache lines and no slot.
struct SlotQueues: ~Copyable {
    private struct Link {
        /// Towards the newest.
        var newer: UInt32
        /// Towards the oldest.
        var older: UInt32
        var stamp: Double
    }

    static let noQueue = UInt8.max
    /// Bytes of the slab for each slot.
    static let slotSizeBytes = MemoryLayout<Link>.stride + 1
    private static let none = UInt32.max

    let queueCount: Int
    let slotCount: Int
    private let links: UnsafeMutablePointer<Link>
    private let queues: UnsafeMutablePointer<UInt8>
    private let newest: UnsafeMutablePointer<UInt32>
    private let oldest: UnsafeMutablePointer<UInt32>
    private let tailStamps: UnsafeMutablePointer<Double>

    init(queueCount: Int, slotCount: Int) {
        precondition(queueCount < Int(Self.noQueue) && slotCount < Int(Self.none))
        self.queueCount = queueCount
        self.slotCount = slotCount
        links = .allocate(capacity: slotCount)
        links.initialize(repeating: Link(newer: 0, older: 0, stamp: 0), count: slotCount)
        queues = .allocate(capacity: slotCount)
        queues.initialize(repeating: Self.noQueue, count: slotCount)
        newest = .allocate(capacity: queueCount)
        newest.initialize(repeating: Self.none, count: queueCount)
        oldest = .allocate(capacity: queueCount)
        oldest.initialize(repeating: Self.none, count: queueCount)
        tailStamps = .allocate(capacity: queueCount)
        tailStamps.initialize(repeating: .infinity, count: queueCount)
    }

    deinit {
        links.deallocate()
        queues.deallocate()
        newest.deallocate()
        oldest.deallocate()
        tailStamps.deallocate()
    }

    func queue(of slot: Int) -> Int? {
        queues[slot] == Self.noQueue ? nil : Int(queues[slot])
    }

    func tail(of queue: Int) -> Int? {
        oldest[queue] == Self.none ? nil : Int(oldest[queue])
    }

    func tailStamp(of queue: Int) -> Double { tailStamps[queue] }

    func stamp(of slot: Int) -> Double { links[slot].stamp }

    /// The slot that came after `slot` into its queue.
    func newer(than slot: Int) -> Int? {
        links[slot].newer == Self.none ? nil : Int(links[slot].newer)
    }

    func push(_ slot: Int, to queue: Int, stamp: Double) {
        precondition(queues[slot] == Self.noQueue)
        queues[slot] = UInt8(queue)
        links[slot] = Link(newer: Self.none, older: newest[queue], stamp: stamp)
        if newest[queue] == Self.none {
            oldest[queue] = UInt32(slot)
            tailStamps[queue] = stamp
        } else {
            links[Int(newest[queue])].newer = UInt32(slot)
        }
        newest[queue] = UInt32(slot)
    }

    func remove(_ slot: Int) {
        let queue = Int(queues[slot])
        precondition(queue < queueCount)
        let link = links[slot]
        if link.newer == Self.none {
            newest[queue] = link.older
        } else {
            links[Int(link.newer)].older = link.older
        }
        if link.older == Self.none {
            oldest[queue] = link.newer
            tailStamps[queue] = link.newer == Self.none ? .infinity : links[Int(link.newer)].stamp
        } else {
            links[Int(link.older)].newer = link.newer
        }
        queues[slot] = Self.noQueue
    }

    /// The queue in `range` whose oldest slot has the least stamp.
    func queueOfLeastStamp(in range: Range<Int>) -> (queue: Int, stamp: Double)? {
        var least = Double.infinity
        var found = -1
        for queue in range where tailStamps[queue] < least {
            least = tailStamps[queue]
            found = queue
        }
        return found < 0 ? nil : (found, least)
    }

    /// Moves every slot to `target`, which is empty, in order; `move` gives each its new number.
    func moveAll(to target: borrowing SlotQueues, _ move: (Int) -> Int) {
        for queue in 0..<queueCount {
            var next = tail(of: queue)
            while let slot = next {
                target.push(move(slot), to: queue, stamp: stamp(of: slot))
                next = newer(than: slot)
            }
        }
    }
}
