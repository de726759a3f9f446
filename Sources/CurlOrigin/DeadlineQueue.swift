/// A binary heap of times, each with the exchange that waits for it, earliest first.
///
/// An element stays in the heap when its exchange ends or its deadline moves back. The caller that
/// removes it must check whether it is still valid, and insert a later one if necessary.
///
/// Invariants:
/// 1. No element has an earlier time than its parent at `(index - 1) / 2`.
struct DeadlineQueue {
    struct Element {
        let moment: UInt64
        let transfer: TransferID
    }

    private var heap: [Element] = []

    var first: Element? { heap.first }
    var count: Int { heap.count }

    mutating func insert(_ element: Element) {
        heap.append(element)
        var index = heap.count - 1
        while index > 0, heap[index].moment < heap[(index - 1) / 2].moment {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
        #if ENGINE_CHECKS
            checkInvariants()
        #endif
    }

    mutating func removeFirst() {
        guard let last = heap.popLast(), !heap.isEmpty else { return }
        heap[0] = last
        var index = 0
        while true {
            var smallest = index
            for child in [2 * index + 1, 2 * index + 2] where child < heap.count {
                if heap[child].moment < heap[smallest].moment { smallest = child }
            }
            if smallest == index { break }
            heap.swapAt(index, smallest)
            index = smallest
        }
        #if ENGINE_CHECKS
            checkInvariants()
        #endif
    }

    #if ENGINE_CHECKS
        func checkInvariants() {
            for index in heap.indices.dropFirst() {
                precondition(heap[(index - 1) / 2].moment <= heap[index].moment)
            }
        }
    #endif
}
