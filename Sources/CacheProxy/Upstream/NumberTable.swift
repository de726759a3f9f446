/// Values under numbers above 0 that this process counts, for example exchanges under their
/// identifiers.
///
/// No client chooses the numbers, so that one multiplication spreads them, where a dictionary hashes
/// against chosen keys. A number stands in the first free place from its home on; at most half of
/// the places are taken, so that a search passes few others.
///
/// Invariants, checked by `checkInvariants()`:
/// 1. No place between a number's home and its own is free.
/// 2. `count` places are taken, at most half of all, each with a value.
struct NumberTable<Value> {
    /// The numbers; 0 is a free place.
    private var numbers: [UInt64]
    private var contents: [Value?]
    /// The bits of a product that are no part of a home.
    private var shift: UInt64
    private(set) var count = 0

    /// The places of a new table: 16.
    private static var sizeBitsMin: UInt64 { 4 }

    init() { self.init(sizeBits: Self.sizeBitsMin) }

    private init(sizeBits: UInt64) {
        numbers = Array(repeating: 0, count: 1 << sizeBits)
        contents = Array(repeating: nil, count: 1 << sizeBits)
        shift = 64 - sizeBits
    }

    var isEmpty: Bool { count == 0 }
    /// The values, in no order.
    var values: [Value] { contents.compactMap(\.self) }

    subscript(number: UInt64) -> Value? { place(of: number).flatMap { contents[$0] } }

    /// Adds a value under a number that has none.
    mutating func insert(_ value: Value, under number: UInt64) {
        assert(number != 0 && place(of: number) == nil, "a number has one value")
        if 2 * count >= numbers.count { grow() }
        var place = home(of: number)
        while numbers[place] != 0 { place = after(place) }
        numbers[place] = number
        contents[place] = value
        count += 1
        checkInvariants()
    }

    /// Removes the value of a number; returns `nil` if it has none.
    @discardableResult
    mutating func remove(_ number: UInt64) -> Value? {
        guard var free = place(of: number) else { return nil }
        let value = contents[free].take()
        // A later number moves to the free place, unless its home is behind that.
        var place = after(free)
        while numbers[place] != 0 {
            if distance(from: home(of: numbers[place]), to: place)
                >= distance(from: free, to: place)
            {
                numbers[free] = numbers[place]
                contents.swapAt(free, place)
                free = place
            }
            place = after(place)
        }
        numbers[free] = 0
        count -= 1
        checkInvariants()
        return value
    }

    private mutating func grow() {
        var larger = Self(sizeBits: 64 - shift + 1)
        for (number, content) in zip(numbers, contents) {
            if let content { larger.insert(content, under: number) }
        }
        self = larger
    }

    private func place(of number: UInt64) -> Int? {
        var place = home(of: number)
        while numbers[place] != 0 {
            if numbers[place] == number { return place }
            place = after(place)
        }
        return nil
    }

    /// Numbers in a row have homes far from each other: the factor is 2^64 divided by the golden
    /// ratio.
    private func home(of number: UInt64) -> Int {
        Int(truncatingIfNeeded: (number &* 0x9E37_79B9_7F4A_7C15) >> shift)
    }

    private func after(_ place: Int) -> Int { (place + 1) & (numbers.count - 1) }

    private func distance(from start: Int, to end: Int) -> Int {
        (end - start) & (numbers.count - 1)
    }

    /// Checks the counts; the tests of the table check that each number is found.
    private func checkInvariants() {
        #if ENGINE_CHECKS
            precondition(count >= 0 && 2 * count <= numbers.count)
        #endif
    }
}
