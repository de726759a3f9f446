/// Elements that leave in the order in which they came.
///
/// The line releases an element that leaves, and drops the places of such elements once they are
/// half of its array.
public struct FIFO<Element> {
    @usableFromInline var places: [Element?] = []
    /// The number of places whose elements have left.
    @usableFromInline var head = 0

    /// Makes an empty line.
    @inlinable public init() {}

    /// The number of elements in the line.
    @inlinable public var count: Int { places.count - head }
    /// Whether no element is in the line.
    @inlinable public var isEmpty: Bool { places.count == head }

    /// Adds an element after all others.
    @inlinable public mutating func append(_ element: Element) { places.append(element) }

    /// Removes and returns the first element; `nil` if the line is empty.
    @inlinable public mutating func popFirst() -> Element? {
        guard head < places.count else { return nil }
        let element = places[head].take()
        head += 1
        if head == places.count {
            places.removeAll(keepingCapacity: head <= Self.keptMax)
            head = 0
        } else if head * 2 >= places.count {
            places.removeFirst(head)
            head = 0
        }
        return element
    }

    /// Removes all elements, and the room that was reserved for them.
    @inlinable public mutating func removeAll() { self = FIFO() }

    /// The number of places that stay reserved for an empty line.
    @usableFromInline static var keptMax: Int { 1_024 }

    #if ENGINE_CHECKS
        /// The elements, the first to leave first.
        public var elements: [Element] { places[head...].compactMap(\.self) }
    #endif
}

extension FIFO: Sendable where Element: Sendable {}
