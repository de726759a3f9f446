/// The deadlines of all transfers under way.
///
/// Touched by the event thread alone.
///
/// Invariants:
/// 1. A transfer with a deadline is in the queue, at that moment or an earlier one.
final class DeadlineBook {
    private var queue = DeadlineQueue()

    /// The first moment at which something may be due.
    var next: UInt64 { queue.first?.moment ?? .max }

    /// Takes note of a deadline that may have moved.
    func note(_ transfer: Transfer) {
        let moment = transfer.deadlines.next
        guard moment < transfer.queuedMoment else { return }
        transfer.queuedMoment = moment
        queue.insert(.init(moment: moment, transfer: transfer.exchange.id))
    }

    /// The exchanges that may have taken too long, out of the queue.
    func takeDue(now: UInt64) -> [DeadlineQueue.Element] {
        var due: [DeadlineQueue.Element] = []
        while let first = queue.first, first.moment <= now {
            queue.removeFirst()
            due.append(first)
        }
        return due
    }
}
