/// A growing array of elements at stable indexes, for values inside a mutex.
///
/// Unlike `Array` it has no reference counting, no uniqueness checks and no copies.
///
/// `@unchecked Sendable`: the memory has one owner, this value, which cannot be copied.
struct Slab<Element>: ~Copyable, @unchecked Sendable {
    private var base: UnsafeMutablePointer<Element>
    private(set) var count = 0
    private var capacity: Int

    init(capacity: Int = 16) {
        precondition(capacity > 0)
        self.capacity = capacity
        base = .allocate(capacity: capacity)
    }

    deinit {
        base.deinitialize(count: count)
        base.deallocate()
    }

    subscript(index: Int) -> Element {
        _read {
            precondition(index >= 0 && index < count)
            yield base[index]
        }
        _modify {
            precondition(index >= 0 && index < count)
            yield &base[index]
        }
    }

    mutating func append(_ element: Element) {
        if count == capacity { grow() }
        (base + count).initialize(to: element)
        count += 1
    }

    private mutating func grow() {
        let larger = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
        larger.moveInitialize(from: base, count: count)
        base.deallocate()
        base = larger
        capacity *= 2
    }
}
