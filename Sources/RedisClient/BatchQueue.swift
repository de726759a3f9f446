/// Batches in the order of sending, with the earliest of their deadlines.
///
/// Deadlines may differ. A batch whose deadline is not before that of a later one can never be the
/// earliest again, so `minima` keeps only those that can: appending and removing cost a constant
/// time on average.
///
/// Invariants:
/// 1. `minima` has rising numbers and strictly rising deadlines; its first deadline is the earliest.
/// 2. The numbers in `minima` are those of batches in the queue.
struct BatchQueue {
    struct Element {
        let batch: Batch
        /// The moment of sending.
        let moment: UInt64
    }

    private struct Minimum {
        let number: Int
        let deadline: UInt64
    }

    private var elements: [Element?] = []
    private var head = 0
    /// The number of the first element.
    private var firstNumber = 0
    private var minima: [Minimum] = []
    private var minimaHead = 0

    var isEmpty: Bool { head == elements.count }
    var count: Int { elements.count - head }
    var first: Element? { isEmpty ? nil : elements[head] }
    var earliestDeadline: UInt64 {
        minimaHead < minima.count ? minima[minimaHead].deadline : .max
    }

    mutating func append(_ batch: Batch, moment: UInt64) {
        while minima.count > minimaHead, let last = minima.last, last.deadline >= batch.deadline {
            minima.removeLast()
        }
        minima.append(Minimum(number: firstNumber + count, deadline: batch.deadline))
        elements.append(Element(batch: batch, moment: moment))
    }

    mutating func popFirst() -> Batch? {
        guard let element = first else { return nil }
        elements[head] = nil
        head += 1
        if minimaHead < minima.count, minima[minimaHead].number == firstNumber { minimaHead += 1 }
        firstNumber += 1
        compact()
        return element.batch
    }

    /// Removes and returns every batch, in order.
    mutating func removeAll() -> [Batch] {
        let batches = elements[head...].compactMap { $0?.batch }
        self = BatchQueue()
        return batches
    }

    /// Removes and returns the batches whose deadline has passed.
    mutating func removeExpired(now: UInt64) -> [Batch] {
        guard earliestDeadline <= now else { return [] }
        var expired: [Batch] = []
        var kept = BatchQueue()
        for case let element? in elements[head...] {
            if element.batch.deadline <= now {
                expired.append(element.batch)
            } else {
                kept.append(element.batch, moment: element.moment)
            }
        }
        self = kept
        return expired
    }

    /// Frees the places in front once they are the larger part.
    private mutating func compact() {
        if head == elements.count {
            elements.removeAll(keepingCapacity: elements.count <= 4_096)
            head = 0
        } else if head > 64, head > elements.count / 2 {
            elements.removeSubrange(..<head)
            head = 0
        }
        if minimaHead == minima.count {
            minima.removeAll(keepingCapacity: minima.count <= 4_096)
            minimaHead = 0
        } else if minimaHead > 64, minimaHead > minima.count / 2 {
            minima.removeSubrange(..<minimaHead)
            minimaHead = 0
        }
    }

    #if ENGINE_CHECKS
        func checkInvariants() {
            let current = minima[minimaHead...]
            for (earlier, later) in zip(current, current.dropFirst()) {
                precondition(earlier.number < later.number && earlier.deadline < later.deadline)
            }
            precondition(current.allSatisfy { $0.number - firstNumber < count })
            precondition(isEmpty == current.isEmpty)
        }
    #endif
}
