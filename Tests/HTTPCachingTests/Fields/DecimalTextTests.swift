import CacheTestSupport
import Testing

@testable import HTTPCaching

@Suite("Numbers as decimal text")
struct DecimalTextTests {
    @Test func numbersAreWrittenAsSpelled() {
        var random = SeededRandom(seed: 7)
        var values = [0, 1, 9, 10, 99, 100, -1, -10, .max, .min]
        for shift in 0..<63 { values.append(Int.random(in: 0..<(1 << shift | 2), using: &random)) }
        for value in values {
            let text = withUnsafeTemporaryAllocation(byteCount: 24, alignment: 1) { buffer in
                let count = DecimalText.write(value, into: buffer)
                return String(decoding: buffer[0..<count], as: UTF8.self)
            }
            #expect(text == String(value))
        }
    }
}
