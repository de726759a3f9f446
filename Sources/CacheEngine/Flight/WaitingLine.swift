/// A queue whose elements may leave from the middle.
///
/// Leaving clears a place. Cleared places are removed once they are the majority, so that every
/// operation costs amortised O(log n), even if ten thousand elements leave at once.
///
/// Invariants, checked by `checkInvariants()`:
/// 1. Tickets ascend.
/// 2. `count` places are taken, all of them at or behind `front`.
package struct WaitingLine<Element> {
    package typealias Ticket = Int

    private var places: [(ticket: Ticket, element: Element?)] = []
    private var front = 0
    private var lastTicket = 0
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }

    /// Adds an element at the end; its ticket is never reused.
    package mutating func enter(_ element: Element) -> Ticket {
        lastTicket += 1
        assert(places.last.map { $0.ticket < lastTicket } ?? true, "tickets ascend")
        places.append((lastTicket, element))
        count += 1
        assert(position(of: lastTicket) == places.count - 1, "it is found where it was put")
        return lastTicket
    }

    /// Removes the element of the ticket; returns `nil` if it has left.
    package mutating func leave(_ ticket: Ticket) -> Element? {
        guard let position = position(of: ticket), let element = places[position].element.take()
        else { return nil }
        count -= 1
        sweep()
        assert(self[ticket] == nil, "it is found no more")
        return element
    }

    /// The element of the ticket; `nil` if it has left.
    subscript(ticket: Ticket) -> Element? { position(of: ticket).flatMap { places[$0].element } }

    /// Changes the element of the ticket; returns `false` if it has left.
    mutating func update(_ ticket: Ticket, _ change: (inout Element) -> Void) -> Bool {
        guard let position = position(of: ticket), var element = places[position].element.take()
        else { return false }
        change(&element)
        places[position].element = element
        return true
    }

    /// The element that entered first of those still in the line.
    package var first: (ticket: Ticket, element: Element)? {
        for place in places[front...] {
            if let element = place.element { return (place.ticket, element) }
        }
        return nil
    }

    package mutating func popFirst() -> Element? {
        guard let first else { return nil }
        return leave(first.ticket)
    }

    /// Removes all elements; they keep their tickets in the line that is returned.
    mutating func takeAll() -> WaitingLine {
        var taken = WaitingLine()
        swap(&self, &taken)
        lastTicket = taken.lastTicket
        return taken
    }

    /// Lends the elements to `visit`, in the order of their tickets.
    ///
    /// The loop uses indices, because an iterator would retain each element.
    func forEach(_ visit: (Ticket, Element) -> Void) {
        places.withUnsafeBufferPointer { places in
            for index in front..<places.count {
                if let element = places[index].element { visit(places[index].ticket, element) }
            }
        }
    }

    /// Takes all elements out, in the order of their tickets.
    mutating func drain(_ visit: (Ticket, consuming Element) -> Void) {
        for index in front..<places.count {
            if let element = places[index].element.take() { visit(places[index].ticket, element) }
        }
        places.removeAll()
        front = 0
        count = 0
    }

    /// All elements, in the order of their tickets.
    var everyone: [(ticket: Ticket, element: Element)] {
        places[front...].compactMap { place in place.element.map { (place.ticket, $0) } }
    }

    private func position(of ticket: Ticket) -> Int? {
        var low = front
        var high = places.count
        while low < high {
            let middle = (low + high) / 2
            if places[middle].ticket < ticket { low = middle + 1 } else { high = middle }
        }
        return low < places.count && places[low].ticket == ticket ? low : nil
    }

    private mutating func sweep() {
        while front < places.count, places[front].element == nil { front += 1 }
        if places.count > 2 * count + 16 {
            // In place, because a line in constant use would otherwise allocate again and again.
            places.removeAll { $0.element == nil }
            front = 0
            assert(places.count == count, "only the places that are taken are kept")
        }
        checkInvariants()
    }

    /// Checks the invariants that cost O(1); the tests of the line check the rest.
    func checkInvariants() {
        #if ENGINE_CHECKS
            precondition(count >= 0 && count <= places.count - front)
            precondition(front == places.count || places[front].element != nil)
        #endif
    }
}

extension WaitingLine: Sendable where Element: Sendable {}
