/// The deadlines of all running transfers.
///
/// Only the event thread uses it.
///
/// Invariants:
/// 1. A transfer with a deadline is in the queue, at the time of its deadline or earlier.
final class DeadlineBook {
    private var queue = DeadlineQueue()

    /// The earliest time at which a deadline may be due.
    var next: UInt64 { queue.first?.moment ?? .max }

    /// Records a deadline that may have moved.
    func note(_ transfer: Transfer) {
        let moment = transfer.deadlines.next
        guard moment < transfer.queuedMoment else { return }
        transfer.queuedMoment = moment
        queue.insert(.init(moment: moment, transfer: transfer.exchange.id))
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
