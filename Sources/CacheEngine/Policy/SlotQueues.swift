/// First-in-first-out queues of slots, linked through one slab.
///
/// A slot stores its mark as the difference to the mark of the next older slot, in few bits. Only
/// the oldest and the newest mark of a queue are stored in full.
///
/// Invariants:
/// 1. A slot is in at most one queue, the one that `queue(of:)` returns.
/// 2. `tailMarks[q]` is the mark of the oldest slot of queue `q`, `.never` if the queue is empty.
/// 3. The tail's mark plus the delays of the slots after it is `newestMarks[q]`.
/// 4. Bit `q` of `occupied` is set if and only if queue `q` is not empty.
///
/// Not `Copyable`: it owns its slab. The queues are few, most of them are empty, and their heads are
/// contiguous, so that the search for the next victim reads a few cache lines and no slot.
struct SlotQueues: ~Copyable {
    /// When a slot was queued: the stamp that the policy gave it, and the time.
    struct Mark {
        var stamp: Double
        var time: Double

        static let never = Self(stamp: .infinity, time: 0)

        static func + (mark: Self, delay: Delay) -> Self {
            Self(stamp: mark.stamp + delay.stamp.value, time: mark.time + delay.time.value)
        }

        static func - (mark: Self, delay: Delay) -> Self {
            Self(stamp: mark.stamp - delay.stamp.value, time: mark.time - delay.time.value)
        }
    }

    /// The difference of two marks.
    struct Delay {
        var stamp: RoundedDifference
        var time: RoundedDifference

        static let zero = Self(from: Mark(stamp: 0, time: 0), to: Mark(stamp: 0, time: 0))

        init(from older: Mark, to newer: Mark, roundingBits: UInt32 = 0x8000) {
            stamp = RoundedDifference(newer.stamp - older.stamp, roundingBits: roundingBits)
            time = RoundedDifference(newer.time - older.time, roundingBits: roundingBits)
        }
    }

    /// The place of a slot in its queue.
    private struct Link {
        /// The next newer and older slot; each link also holds half of the queue's number.
        var newer: UInt32
        var older: UInt32
        /// The difference to the mark of the next older slot.
        var delay: Delay

        static let unlinked = Self(newer: .max, older: .max, delay: .zero)
    }

    /// The bytes of the slab for each slot.
    static let slotSizeBytes = MemoryLayout<Link>.stride
    /// The bytes of the slab for each queue, whose bit counts as a byte.
    static let queueSizeBytes =
        2 * MemoryLayout<UInt32>.stride + 2 * MemoryLayout<Mark>.stride + 1
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
    private let tailMarks: UnsafeMutablePointer<Mark>
    private let newestMarks: UnsafeMutablePointer<Mark>
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
        tailMarks = .allocate(capacity: queueCount)
        tailMarks.initialize(repeating: .never, count: queueCount)
        newestMarks = .allocate(capacity: queueCount)
        newestMarks.initialize(repeating: .never, count: queueCount)
        let words = (queueCount + 63) / 64
        occupied = .allocate(capacity: words)
        occupied.initialize(repeating: 0, count: words)
    }

    deinit {
        links.deallocate()
        newest.deallocate()
        oldest.deallocate()
        tailMarks.deallocate()
        newestMarks.deallocate()
        occupied.deallocate()
    }

    func queue(of slot: Int) -> Int? {
        let link = links[slot]
        let queue = Int((link.newer >> Self.slotBits) << 4 | link.older >> Self.slotBits)
        return queue == Self.noQueue ? nil : queue
    }

    func tail(of queue: Int) -> Int? { Self.slot(oldest[queue]) }

    /// The mark of the oldest slot of the queue, or `.never`.
    func tailMark(of queue: Int) -> Mark { tailMarks[queue] }

    /// The slot that entered the queue directly after `slot`.
    func newer(than slot: Int) -> Int? { Self.slot(links[slot].newer) }

    func push(_ slot: Int, to queue: Int, _ mark: Mark) {
        precondition(self.queue(of: slot) == nil)
        let before = newest[queue]
        var delay = Delay.zero
        if let before = Self.slot(before) {
            delay = Delay(from: newestMarks[queue], to: mark)
            newestMarks[queue] = newestMarks[queue] + delay
            links[before].newer.point(to: UInt32(slot))
        } else {
            oldest[queue] = UInt32(slot)
            tailMarks[queue] = mark
            newestMarks[queue] = mark
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
            tailMarks[queue] = .never
            occupied[queue >> 6] &= ~(1 << UInt64(queue & 63))
        case (let newer?, nil): tailMarks[queue] = tailMarks[queue] + links[newer].delay
        case (nil, _?): newestMarks[queue] = newestMarks[queue] - link.delay
        case (let newer?, _?): join(newer, link.delay, of: slot, in: queue)
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

    /// Adds the delay of a slot that leaves to that of the next newer one.
    ///
    /// The sum is rounded up or down by the slot's number, so that the errors of many removals
    /// cancel each other out.
    private func join(_ newer: Int, _ delay: Delay, of slot: Int, in queue: Int) {
        let zero = Mark(stamp: 0, time: 0)
        let exact = zero + delay + links[newer].delay
        let noise = (UInt32(truncatingIfNeeded: slot) &* 0x9E37_79B9) >> 16
        links[newer].delay = Delay(from: zero, to: exact, roundingBits: noise)
        let rounded = zero + links[newer].delay
        newestMarks[queue].stamp += rounded.stamp - exact.stamp
        newestMarks[queue].time += rounded.time - exact.time
    }

    /// The queue whose oldest slot has the least rank; `nil` and infinity if all are empty.
    struct Least {
        var queue: Int?
        var rank = Double.infinity
    }

    /// The queue in `range` whose oldest slot has the least rank.
    @inline(__always)
    func least(in range: Range<Int>, by rank: (_ queue: Int, _ tail: Mark) -> Double) -> Least {
        var least = Least()
        for word in 0..<occupiedWords {
            var bits = occupied[word]
            while bits != 0 {
                let queue = word << 6 + bits.trailingZeroBitCount
                bits &= bits - 1
                guard range.contains(queue) else { continue }
                let found = rank(queue, tailMarks[queue])
                if found < least.rank { least = Least(queue: queue, rank: found) }
            }
        }
        return least
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
            larger.tailMarks[queue] = tailMarks[queue]
            larger.newestMarks[queue] = newestMarks[queue]
        }
        larger.occupied.update(from: occupied, count: occupiedWords)
        return count
    }

    private static func slot(_ link: UInt32) -> Int? {
        link & none == none ? nil : Int(link & none)
    }
}

/// A number in two bytes, rounded to eight binary digits.
///
/// Its bits are the upper half of a `Float`.
struct RoundedDifference {
    private let bits: UInt16

    static let zero = Self(0)

    /// `roundingBits` is added to the half that is cut off: 0x8000 rounds to the nearest.
    init(_ value: Double, roundingBits: UInt32 = 0x8000) {
        bits = UInt16(truncatingIfNeeded: (Float(value).bitPattern &+ roundingBits) >> 16)
    }

    var value: Double { Double(Float(bitPattern: UInt32(bits) << 16)) }
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
