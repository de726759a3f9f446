/// The times under which a transfer is in the deadline queue; `UInt64.max` if it is not.
struct QueuedMoments {
    var deadline = UInt64.max
    /// That of the next look at its socket.
    var look = UInt64.max

    /// Forgets an element that was taken from the queue; returns `false` if it is not valid.
    mutating func remove(_ moment: UInt64) -> Bool {
        guard moment == deadline || moment == look else { return false }
        if moment == deadline { deadline = .max }
        if moment == look { look = .max }
        return true
    }
}

/// The deadlines of all running transfers.
///
/// Only the event thread uses it.
///
/// Invariants:
/// 1. A transfer with a deadline is in the queue, at the time of its deadline or earlier.
/// 2. A transfer with a look at its socket is in the queue, at the time of the look or earlier.
final class DeadlineBook {
    private var queue = DeadlineQueue()

    /// The earliest time at which a deadline may be due.
    var next: UInt64 { queue.first?.moment ?? .max }

    /// The elements in the queue, also those that are not valid any more.
    var count: Int { queue.count }

    /// Records the moments of a transfer, which may have moved.
    func note(_ transfer: Transfer) {
        note(
            transfer.exchange.id,
            deadline: transfer.deadlines.next,
            look: transfer.lookMoment,
            in: &transfer.queued
        )
    }

    /// The deadline and the look have an element each, which stays when its moment moves back.
    func note(
        _ transfer: TransferID,
        deadline: UInt64,
        look: UInt64,
        in queued: inout QueuedMoments
    ) {
        if deadline < queued.deadline {
            queued.deadline = deadline
            queue.insert(.init(moment: deadline, transfer: transfer))
        }
        if look < queued.look {
            queued.look = look
            queue.insert(.init(moment: look, transfer: transfer))
        }
    }

    /// Removes and returns the exchanges whose deadline may have passed.
    func takeDue(now: UInt64) -> [DeadlineQueue.Element] {
        var due: [DeadlineQueue.Element] = []
        while let first = queue.first, first.moment <= now {
            queue.removeFirst()
            due.append(first)
        }
        return due
    }
}
