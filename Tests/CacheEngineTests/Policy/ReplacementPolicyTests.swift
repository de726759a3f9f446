import CacheTestSupport
import Synchronization
import Testing

@testable import CacheEngine

@Suite struct ReplacementPolicyTests {
    @Test func sketchNeverCountsTooLowUntilItHalves() {
        var sketch = FrequencySketch(keys: 500, age: SketchAge())
        for key in 0..<200 { for _ in 0..<(key % 10) { sketch.count(UInt64(key)) } }
        for key in 0..<200 { #expect(sketch.frequency(of: UInt64(key)) >= key % 10) }
        sketch.grow(keys: 4_000)
        for key in 0..<200 { #expect(sketch.frequency(of: UInt64(key)) >= key % 10) }
    }

    @Test func sketchForgetsHalfInTheEnd() {
        var sketch = FrequencySketch(keys: 64, age: SketchAge())
        sketch.count(1, times: 15)
        for key in 2..<1_300 { sketch.count(UInt64(key)) }
        #expect(sketch.frequency(of: 1) < 15)
    }

    @Test func sketchesOfOneAgeFadeTogether() {
        let age = SketchAge()
        var idle = FrequencySketch(keys: 64, age: age)
        var busy = FrequencySketch(keys: 64, age: age)
        idle.count(1, times: 12)
        for key in 2..<6_000 { busy.count(UInt64(key)) }
        #expect(age.halvings > 1)
        let left = idle.frequency(of: 1)
        #expect(left == 12 >> age.halvings)
    }

    @Test func queuesKeepOrderAndKnowTheLeastTail() {
        let queues = SlotQueues(queueCount: 3, slotCount: 8)
        for slot in 0..<4 { queues.push(slot, to: slot % 2, mark(Double(10 + slot))) }
        #expect(queues.least(in: 0..<3) { $1.stamp }.rank == 10)
        queues.remove(0)
        #expect(queues.least(in: 0..<3) { $1.stamp }.rank == 11)
        #expect(queues.least(in: 0..<3) { $1.time }.rank == 110)
        #expect(queues.tail(of: 0) == 2)
        #expect(queues.queue(of: 0) == nil)
        queues.remove(2)
        #expect(queues.tail(of: 0) == nil)
    }

    private func mark(_ stamp: Double) -> SlotQueues.Mark {
        SlotQueues.Mark(stamp: stamp, time: stamp * 10)
    }

    @Test func aDifferenceIsRoundedToEightDigits() {
        #expect(RoundedDifference.zero.value == 0)
        var random = SeededRandom(seed: 3)
        for _ in 0..<10_000 {
            let scale = Double(UInt64(1) << (random.next() % 40)) / 1024
            let exact = (Double(random.next() % 2_000_001) / 1_000_000 - 1) * scale
            let value = RoundedDifference(exact).value
            #expect(abs(value - exact) <= abs(exact) / 256, "\(exact), \(value)")
        }
    }

    /// Those of an older slot's newer neighbours leave one after the other, in either order.
    @Test(arguments: [false, true]) func removalsInOrderDoNotMoveOtherMarks(newestFirst: Bool) {
        let count = 20_000
        let queues = SlotQueues(queueCount: 1, slotCount: count)
        for slot in 0..<count { queues.push(slot, to: 0, mark(Double(slot * 3))) }
        let leaving = 1..<(count - 100)
        for slot in leaving { queues.remove(newestFirst ? count - 100 - slot : slot) }
        queues.remove(0)
        for slot in (count - 100)..<count {
            let tail = queues.tailMark(of: 0)
            #expect(abs(tail.stamp - Double(slot * 3)) < Double(count * 3) / 100)
            #expect(queues.tail(of: 0) == slot)
            queues.remove(slot)
        }
    }

    /// A difference is rounded, and a removal joins two; so the marks agree nearly.
    @Test(arguments: 1...64 as ClosedRange<UInt64>)
    func queuesAgreeWithOnesThatKeepEveryStamp(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let slotCount = 40
        var queues = SlotQueues(queueCount: 94, slotCount: slotCount)
        var model = [[(slot: Int, stamp: Double)]](repeating: [], count: 94)
        var age = 1e6
        for step in 0..<2_000 {
            age += Double(random.next() % 100) / 16
            let slot = Int(random.next() % UInt64(slotCount))
            if let queue = queues.queue(of: slot) {
                queues.remove(slot)
                model[queue].removeAll { $0.slot == slot }
            } else {
                let queue = [0, 15, 16, 93][Int(random.next() % 4)]
                queues.push(slot, to: queue, mark(age))
                model[queue].append((slot, age))
            }
            if random.next() % 256 == 0 {
                let copy = SlotQueues(queueCount: 94, slotCount: slotCount)
                let newSlots = (0..<UInt32(slotCount)).shuffled(using: &random)
                let count = queues.copyAll(to: copy, newSlots)
                #expect(count == model.reduce(0) { $0 + $1.count })
                queues = copy
                model = model.map { held in held.map { (Int(newSlots[$0.slot]), $0.stamp) } }
            }
            let doubtful = model.indices.first { queue in
                let (held, tail) = (model[queue], queues.tailMark(of: queue))
                let isSame =
                    held.first.map {
                        abs(tail.stamp - $0.stamp) < 12 && abs(tail.time - 10 * $0.stamp) < 120
                    } ?? (tail.stamp == .infinity)
                return !isSame || queues.tail(of: queue) != held.first?.slot
                    || zip(held, held.dropFirst()).contains { older, newer in
                        queues.newer(than: older.slot) != newer.slot
                    }
            }
            #expect(doubtful == nil, "queue \(doubtful ?? 0), step \(step)")
            // Queue 93 is outside the range.
            let least = (0..<93).map { queues.tailMark(of: $0).stamp }.min()
            let found = queues.least(in: 0..<93) { $1.stamp }
            #expect(found.rank == least, "step \(step)")
            #expect(found.queue.map { queues.tailMark(of: $0).stamp } ?? .infinity == found.rank)
        }
    }

    @Test func aSmallerCacheIsSampledMoreDensely() {
        let capacityBytes = 256 << 20
        let shared = SharedPolicyState(objective: .balanced, capacityBytes: capacityBytes)
        let trial = GateTrial(shared: shared)
        var random = SeededRandom(seed: 7)
        for _ in 0..<1_000_000 {
            trial.note(random.next(), chargeBytes: 160, mayCompute: true) { nil }
        }
        let keys = (0..<100_000).map { _ in random.next() }
        let before = keys.count { trial.isSampled($0) }
        trial.setCapacity(capacityBytes / 64)
        let after = keys.count { trial.isSampled($0) }
        #expect(before > 0 && after > 32 * before, "\(before), then \(after)")
    }

    /// Objects are requested less as they age.
    ///
    /// Without the gate about a fiftieth more is hit, which is too steady a lead for chance.
    @Test func aSmallLeadThatIsNoChanceOpensTheGate() {
        let charge = 64 << 10
        let shared = SharedPolicyState(objective: .balanced, capacityBytes: 2_400 * charge)
        let trial = GateTrial(shared: shared)
        var random = SeededRandom(seed: 5)
        for step in 0..<60_000 {
            let share = Double(random.next() % 1_000) / 1_000
            let object = step / 5 - Int(share * share * share * 4_000)
            guard object >= 0 else { continue }
            trial.note(
                UInt64(object) &* 0x9E37_79B9_7F4A_7C15,
                chargeBytes: charge,
                mayCompute: true
            ) { nil }
        }
        let isOn = shared.gateIsOn.load(ordering: .relaxed)
        #expect(!isOn)
        #expect(shared.promotesFreely)
    }

    /// Neither choice is better if all objects are requested equally often; only chance opens the gate.
    @Test func aGateThatChanceHasOpenedPromotesNothingFreely() {
        let charge = 64 << 10
        let shared = SharedPolicyState(objective: .balanced, capacityBytes: 500 * charge)
        let trial = GateTrial(shared: shared)
        var random = SeededRandom(seed: 6)
        let steps = 60_000
        var freeSteps = 0
        for _ in 0..<steps {
            let object = random.next() % 8_000
            trial.note(object &* 0x9E37_79B9_7F4A_7C15, chargeBytes: charge, mayCompute: true) {
                nil
            }
            shared.gateIsOn.store(false, ordering: .relaxed)
            if shared.promotesFreely { freeSteps += 1 }
        }
        #expect(freeSteps < steps / 10)
    }

    /// A policy that evicts the oldest first never holds the next entry of a loop.
    @Test func loopLargerThanTheMemoryStillHits() async {
        let body = 8 << 10
        let capacity = 200 * Entry.chargeBytes(bodyCount: body)
        let tier = MemoryTier(MemoryConfiguration(capacityBytes: capacity))
        for _ in 0..<20 {
            for object in UInt64(0)..<600 {
                let hash = withUnsafeBytes(of: object) { MemoryFixtures.hasher.hash($0) }
                let key = UnsafeRawBufferPointer(start: nil, count: 0)
                if !tier.withEntry(for: hash, key: key, { _ in }) {
                    tier.store(.declaringBody(hash: hash, bodyCount: body))
                }
            }
        }
        #expect(await tier.counters().hits > 400)
    }
}
