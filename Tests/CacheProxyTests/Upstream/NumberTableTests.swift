import CacheTestSupport
import Testing

@testable import CacheProxy

/// Values under the numbers that a process counts.
@Suite struct NumberTableTests {
    private final class Element: Sendable {
        let number: UInt64
        init(_ number: UInt64) { self.number = number }
    }

    /// Numbers in a row, and numbers of any value, whose homes meet more often.
    @Test(arguments: UInt64(0)..<20, [UInt64(300), .max])
    func tableFindsWhatADictionaryFinds(_ seed: UInt64, _ numberMax: UInt64) {
        var random = SeededRandom(seed: seed)
        var table = NumberTable<UInt64>()
        var model: [UInt64: UInt64] = [:]
        var present: [UInt64] = []
        for step in 0..<3_000 {
            let removes = random.next() % 100 < (step / 500 % 2 == 0 ? 30 : 70)
            if removes, !present.isEmpty {
                present.swapAt(Int(random.next() % UInt64(present.count)), present.count - 1)
                let number = present.removeLast()
                #expect(table.remove(number) == model.removeValue(forKey: number))
            } else {
                let number = random.next() % numberMax + 1
                #expect(table[number] == model[number])
                guard model[number] == nil else { continue }
                table.insert(number &* 3, under: number)
                model[number] = number &* 3
                present.append(number)
            }
            #expect(table.count == model.count && table.isEmpty == model.isEmpty)
        }
        for (number, value) in model { #expect(table[number] == value) }
        #expect(table.values.sorted() == model.values.sorted())
    }

    @Test func removedValueIsReleasedAndANumberWithoutOneHasNone() {
        var table = NumberTable<Element>()
        for number in UInt64(1)...100 { table.insert(Element(number), under: number) }
        for number in UInt64(1)...100 {
            weak var element: Element?
            element = table.remove(number)
            #expect(element == nil && table[number] == nil && table.remove(number) == nil)
        }
        #expect(table.isEmpty)
    }
}
