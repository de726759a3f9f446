import CacheTestSupport
import Testing

@testable import CacheEngine
@testable import Platform

/// Elements that leave in the order in which they came.
@Suite struct FIFOTests {
    private final class Element: Sendable {
        let number: Int
        init(_ number: Int) { self.number = number }
    }

    /// A reader that is slower than the writer never empties the line.
    @Test func elementThatLeftIsReleasedThoughTheLineIsNeverEmpty() {
        var line = FIFO<Element>()
        for number in 0..<3 { line.append(Element(number)) }
        for number in 3..<10_000 {
            weak var first: Element?
            first = line.popFirst()
            #expect(first == nil)
            line.append(Element(number))
            #expect(line.places.count <= 2 * line.count)
        }
        #expect(line.count == 3)
    }

    @Test(arguments: UInt64(0)..<20)
    func elementsLeaveAsFromAnArray(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var line = FIFO<Int>()
        var model: [Int] = []
        for number in 0..<2_000 {
            switch random.next() % 100 {
            case 0:
                line.removeAll()
                model = []
            case 1..<50: #expect(line.popFirst() == (model.isEmpty ? nil : model.removeFirst()))
            default:
                line.append(number)
                model.append(number)
            }
            #expect(line.count == model.count && line.isEmpty == model.isEmpty)
            #expect(line.places.count <= max(1, 2 * model.count))
        }
    }
}
