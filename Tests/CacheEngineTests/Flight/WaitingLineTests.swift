import CacheTestSupport
import Testing

@testable import CacheEngine

/// The line of waiters, compared with a simple array.
@Suite struct WaitingLineTests {
    /// An array that finds tickets by linear search.
    private struct Model {
        var places: [(ticket: Int, element: Int)] = []

        mutating func leave(_ ticket: Int) -> Int? {
            guard let index = places.firstIndex(where: { $0.ticket == ticket }) else { return nil }
            return places.remove(at: index).element
        }
    }

    @Test(arguments: 0..<64 as Range<UInt64>)
    func waitingLineBehavesAsAnArray(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var line = WaitingLine<Int>()
        var model = Model()
        var hasAgreed = true
        for step in 0..<500 {
            let isSame: Bool
            switch Int.random(in: 0..<60, using: &random) {
            case 0..<30:
                model.places.append((line.enter(step), step))
                isSame = true
            case 30..<50:
                let ticket = model.places.randomElement(using: &random)?.ticket ?? 0
                isSame = line.leave(ticket) == model.leave(ticket) && line.leave(ticket) == nil
            case 50..<54:
                let ticket = model.places.first?.ticket ?? 0
                isSame = line.popFirst() == model.leave(ticket)
            case 54..<58:
                // Any ticket given so far, still held or not.
                let ticket = Int.random(in: 0...step, using: &random)
                let index = model.places.firstIndex { $0.ticket == ticket }
                let isSeen = line[ticket] == index.map { model.places[$0].element }
                let isChanged = line.update(ticket) { $0 += 1_000 }
                if let index { model.places[index].element += 1_000 }
                isSame = isSeen && isChanged == (index != nil)
            default:
                var lent: [(ticket: Int, element: Int)] = []
                var taken = line.takeAll()
                if step.isMultiple(of: 2) {
                    taken.forEach { lent.append(($0, $1)) }
                } else {
                    taken.drain { lent.append(($0, $1)) }
                    hasAgreed = hasAgreed && taken.isEmpty && taken.everyone.isEmpty
                }
                isSame = lent.elementsEqual(model.places, by: ==)
                model = Model()
            }
            line.checkInvariants()
            hasAgreed = hasAgreed && isSame && line.count == model.places.count
            if step.isMultiple(of: 20) {
                hasAgreed = hasAgreed && line.everyone.map(\.ticket) == model.places.map(\.ticket)
            }
        }
        #expect(hasAgreed)
    }

    /// Leaving must not take time proportional to the length of the line.
    @Test func hundredThousandWaitersLeaveInAnyOrder() {
        var line = WaitingLine<Int>()
        let tickets = (0..<100_000).map { line.enter($0) }
        let left = tickets.shuffled().filter { line.leave($0) != nil }
        #expect(left.count == 100_000)
        #expect(line.isEmpty)
    }
}
