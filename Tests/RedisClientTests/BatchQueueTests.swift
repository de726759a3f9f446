import CacheTestSupport
import Testing

@testable import RedisClient

@Suite struct BatchQueueTests {
    /// Against an array that is searched for its earliest deadline.
    @Test(arguments: 0..<64)
    func queueAgreesWithAPlainArray(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var queue = BatchQueue()
        var model: [(name: String, deadline: UInt64)] = []
        var number = 0
        for _ in 0..<600 {
            switch random.next() % 100 {
            case 0..<52:
                let deadline = random.next() % (seed % 2 == 0 ? 50 : 5_000)
                queue.append(Batch("\(number)", deadline: deadline), moment: UInt64(number))
                model.append(("\(number)", deadline))
                number += 1
            case 52..<97:
                let batch = queue.popFirst()
                #expect(batch?.name == (model.isEmpty ? nil : model.removeFirst().name))
            case 97, 98:
                let now = random.next() % 40
                let expired = queue.removeExpired(now: now)
                #expect(expired.map(\.name) == model.filter { $0.deadline <= now }.map(\.name))
                model.removeAll { $0.deadline <= now }
            default:
                #expect(queue.removeAll().map(\.name) == model.map(\.name))
                model = []
            }
            #expect(queue.count == model.count)
            #expect(queue.isEmpty == model.isEmpty)
            #expect(queue.earliestDeadline == model.map(\.deadline).min() ?? .max)
            #expect(queue.first?.batch.name == model.first?.name)
            #if ENGINE_CHECKS
                queue.checkInvariants()
            #endif
        }
    }
}
