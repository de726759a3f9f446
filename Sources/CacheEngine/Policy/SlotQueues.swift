/// First-in-first-out queues of slots, linked through one slab.
///
/// A slot stores its stamp as the difference to the stamp of the next older slot, in few bits. Only
/// the oldest and the newest stamp of a queue are stored in full.
///
/// Invariants:
/// 1. A slot is in at most one queue, the one that `queue(of:)` returns.
/// 2. `tailStamps[q]` is the stamp of the oldest slot of queue `q`, infinite if the queue is empty.
/// 3. The tail's stamp plus the delays of the slots after it is `newestStamps[q]`.
/// 4. Bit `q` of `occupied` is set if and only if queue `q` is not empty.
///
/// Not `Copyable`: it owns its slab. The queues are few, most of them are empty, and their heads are
/// contiguous, so that the search for the least stamp reads a few cache lines and no slot.
struct SlotQueues: ~Copyable {
    /// The place of a slot in its queue.
    private struct Link {
        /// The next newer and older slot; each link also holds half of the queue's number.
        var newer: UInt32
        var older: UInt32
        /// The difference to the stamp of the next older slot.
        var delay: Float

        static let unlinked = Self(newer: .max, older: .max, delay: 0)
    }

    /// The bytes of the slab for each slot.
    static let slotSizeBytes = MemoryLayout<Link>.stride
    /// The bytes of the slab for each queue, whose bit counts as a byte.
    static let queueSizeBytes =
        2 * MemoryLayout<UInt32>.stride + 2 * MemoryLayout<Double>.stride + 1
    /// The low bits of a link are the number of a slot; all of them set mean no slot.
    private static let slotBits: UInt32 = 28
    fileprivate static let none: UInt32 = (1 << slotBits) - 1
    /// The queue number in the high bits of both links of a slot that is in no queue.
    private static let noQueue = 255

    let queueCount: Int
    let slotCount: Int
    private let links: UnsafeMutablePointer<Link>
    private let newest: UnsafeMutablePointer<UInt32>
    private let oldest: UnsafeMutablePointer<UInt32>
    private let tailStamps: UnsafeMutablePointer<Double>
    private let newestStamps: UnsafeMutablePointer<Double>
    private let occupied: UnsafeMutablePointer<UInt64>
    private var occupiedWords: Int { (queueCount + 63) / 64 }

    init(queueCount: Int, slotCount: Int) {
        precondition(queueCount < Self.noQueue && slotCount < Int(Self.none))
        self.queueCount = queueCount
        self.slotCount = slotCount
        links = .allocate(capacity: slotCount)
        links.initialize(repeating: .unlinked, count: slotCount)
        newest = .allocate(capacity: queueCount)
        newest.initialize(repeating: Self.none, count: queueCount)
        oldest = .allocate(capacity: queueCount)
        oldest.initialize(repeating: Self.none, count: queueCount)
        tailStamps = .allocate(capacity: queueCount)
        tailStamps.initialize(repeating: .infinity, count: queueCount)
        newestStamps = .allocate(capacity: queueCount)
        newestStamps.initialize(repeating: 0, count: queueCount)
        let words = (queueCount + 63) / 64
        occupied = .allocate(capacity: words)
        occupied.initialize(repeating: 0, count: words)
    }

    deinit {
        links.deallocate()
        newest.deallocate()
        oldest.deallocate()
        tailStamps.deallocate()
        newestStamps.deallocate()
        occupied.deallocate()
    }

    func queue(of slot: Int) -> Int? {
        let link = links[slot]
        let queue = Int((link.newer >> Self.slotBits) << 4 | link.older >> Self.slotBits)
        return queue == Self.noQueue ? nil : queue
    }

    func tail(of queue: Int) -> Int? { Self.slot(oldest[queue]) }

    func tailStamp(of queue: Int) -> Double { tailStamps[queue] }

    /// The slot that entered the queue directly after `slot`.
    func newer(than slot: Int) -> Int? { Self.slot(links[slot].newer) }

    func push(_ slot: Int, to queue: Int, stamp: Double) {
        precondition(self.queue(of: slot) == nil)
        let before = newest[queue]
        var delay: Float = 0
        if let before = Self.slot(before) {
            delay = Float(stamp - newestStamps[queue])
            newestStamps[queue] += Double(delay)
            links[before].newer.point(to: UInt32(slot))
        } else {
            oldest[queue] = UInt32(slot)
            tailStamps[queue] = stamp
            newestStamps[queue] = stamp
            occupied[queue >> 6] |= 1 << UInt64(queue & 63)
        }
        links[slot] = Link(
            newer: UInt32(queue >> 4) << Self.slotBits | Self.none,
            older: UInt32(queue & 15) << Self.slotBits | before,
            delay: delay
        )
        newest[queue] = UInt32(slot)
        assert(self.queue(of: slot) == queue, "reads as written")
    }

    func remove(_ slot: Int) {
        guard let queue = queue(of: slot) else { preconditionFailure("The slot is in no queue") }
        let link = links[slot]
        let (newer, older) = (Self.slot(link.newer), Self.slot(link.older))
        switch (newer, older) {
        case (nil, nil):
            tailStamps[queue] = .infinity
            occupied[queue >> 6] &= ~(1 << UInt64(queue & 63))
        case (let newer?, nil):
            tailStamps[queue] += Double(links[newer].delay)
        case (nil, _?):
            newestStamps[queue] -= Double(link.delay)
        case (let newer?, _?):
            let delay = Double(link.delay) + Double(links[newer].delay)
            links[newer].delay = Float(delay)
            newestStamps[queue] += Double(links[newer].delay) - delay
        }
        if let newer {
            links[newer].older.point(to: link.older)
        } else {
            newest[queue] = link.older & Self.none
        }
        if let older {
            links[older].newer.point(to: link.newer)
        } else {
            oldest[queue] = link.newer & Self.none
        }
        links[slot] = .unlinked
        assert(self.queue(of: slot) == nil, "it is in no queue")
    }

    /// The queue in `range` whose oldest slot has the least stamp, and that stamp.
    func queueOfLeastStamp(in range: Range<Int>) -> (queue: Int, stamp: Double)? {
        var least = Double.infinity
        var found = -1
        for word in 0..<occupiedWords {
            var bits = occupied[word]
            while bits != 0 {
                let queue = word << 6 + bits.trailingZeroBitCount
                bits &= bits - 1
                guard tailStamps[queue] < least, range.contains(queue) else { continue }
                least = tailStamps[queue]
                found = queue
            }
        }
        return found < 0 ? nil : (found, least)
    }

    /// Puts every slot into the same place of `larger`, which is empty, under its new number.
    ///
    /// Goes through the slots, not the queues, so that the memory is read from its beginning to its
    /// end.
    ///
    /// - Returns: The number of slots that are in a queue.
    func copyAll(to larger: borrowing SlotQueues, _ newSlots: [UInt32]) -> Int {
        var count = 0
        for slot in 0..<slotCount where queue(of: slot) != nil {
            var link = links[slot]
            link.newer.renumber(by: newSlots)
            link.older.renumber(by: newSlots)
            precondition(newSlots[slot] != .max, "A slot of a queue holds an entry")
            larger.links[Int(newSlots[slot])] = link
            count += 1
        }
        for queue in 0..<queueCount {
            larger.newest[queue] = newest[queue]
            larger.newest[queue].renumber(by: newSlots)
            larger.oldest[queue] = oldest[queue]
            larger.oldest[queue].renumber(by: newSlots)
            larger.tailStamps[queue] = tailStamps[queue]
            larger.newestStamps[queue] = newestStamps[queue]
        }
        larger.occupied.update(from: occupied, count: occupiedWords)
        return count
    }

    private static func slot(_ link: UInt32) -> Int? {
        link & none == none ? nil : Int(link & none)
    }
}

extension UInt32 {
    /// Changes the slot of a link and keeps its high bits.
    fileprivate mutating func point(to slot: UInt32) {
        self = self & ~SlotQueues.none | slot & SlotQueues.none
    }

    /// Changes the slot of a link, if it has one, to its new number.
    fileprivate mutating func renumber(by newSlots: [UInt32]) {
        let slot = self & SlotQueues.none
        if slot != SlotQueues.none { point(to: newSlots[Int(slot)]) }
    }
}
