import CacheTestSupport
import Testing

@testable import CacheEngine

/// What entries are worth by the rates at which others of their kind were requested again.
@Suite struct ReuseRateTests {
    private let rates = ReuseRates()

    @Test func stepsOfAgeLeaveNoGap() {
        for age in UInt64(0)..<100_000 {
            let step = AgeScale.step(of: age)
            #expect(AgeScale.start(of: step) <= Double(age))
            #expect(Double(age) < AgeScale.start(of: step + 1), "\(age)")
        }
        #expect(AgeScale.step(of: .max) == AgeScale.steps - 1)
    }

    @Test func classesAreNumberedByFrequencyAndSize() {
        var before = -1
        for frequency in [1, 2, 3, 4, 6, 9] {
            for exponent in 6..<30 {
                let isIn = EntryClass(frequency: frequency, chargeBytes: 1 << exponent)
                #expect(isIn.number == before + 1)
                before = isIn.number
                let same = EntryClass(frequency: frequency, chargeBytes: (2 << exponent) - 1)
                #expect(same.number == isIn.number)
                #expect(EntryClass(number: isIn.number).size == isIn.size)
                #expect(EntryClass(number: isIn.number).frequency == isIn.frequency)
                #expect(EntryClass.bytesMin(ofSize: isIn.size) == 1 << exponent)
            }
        }
        #expect(before == EntryClass.count - 1)
        #expect(EntryClass(frequency: 0, chargeBytes: 0).number == 0)
        #expect(EntryClass(frequency: 15, chargeBytes: .max).number == EntryClass.count - 1)
    }

    /// Before anything is known, a frequent entry is worth more, and an old one less.
    @Test func firstGuessIsThatOfFrequencyAndAge() {
        _ = ReuseLearner(slotCount: 64, rates: rates)
        for age: UInt64 in [1, 30, 1_000] {
            #expect(
                rates.rate(frequencyClass: 1, age: age) > rates.rate(frequencyClass: 0, age: age)
            )
            #expect(
                rates.rate(frequencyClass: 1, age: age)
                    > rates.rate(frequencyClass: 1, age: 4 * age)
            )
        }
    }

    /// Keys with two requests come back after 100 newcomers, and keys with many never do.
    @Test func ratesFollowWhatIsRequestedAgain() {
        var learner = ReuseLearner(slotCount: 1_024, rates: rates)
        var random = SeededRandom(seed: 1)
        let returning = (0..<100).map { _ in random.next() }
        for now in UInt64(0)..<20_000 {
            learner.note(returning[Int(now % 100)], frequency: 2, at: now)
            learner.note(random.next(), frequency: 15, at: now)
            learner.computeIfDue(at: now)
        }
        let (few, many) = (EntryClass.frequencyClass(2), EntryClass.frequencyClass(15))
        for age: UInt64 in [1, 20, 80] {
            let (alive, over) = (
                rates.rate(frequencyClass: few, age: age),
                rates.rate(frequencyClass: many, age: age)
            )
            #expect(alive > 10 * over, "\(age): \(alive), \(over)")
            #expect(alive < 1.5 / Double(100 - age) + 0.02, "\(age): \(alive)")
        }
        // The nearer the next request, the more an entry is worth; once it is overdue, nothing.
        let near = rates.rate(frequencyClass: few, age: 80)
        #expect(near > rates.rate(frequencyClass: few, age: 1))
        #expect(near > 10 * rates.rate(frequencyClass: few, age: 2_000))
    }

    @Test func ratesForgetWhatIsOver() {
        var learner = ReuseLearner(slotCount: 1_024, rates: rates)
        var random = SeededRandom(seed: 2)
        for now in UInt64(0)..<10_000 {
            learner.note(now % 100, frequency: 2, at: now)
            learner.computeIfDue(at: now)
        }
        let before = rates.rate(frequencyClass: 1, age: 50)
        for now in UInt64(10_000)..<20_000 {
            learner.fade(to: (now - 10_000) / 1_000)
            learner.note(random.next(), frequency: 2, at: now)
            learner.computeIfDue(at: now)
        }
        let after = rates.rate(frequencyClass: 1, age: 50)
        #expect(after < before / 5, "\(before), \(after)")
    }

    /// With a disk behind the memory, requests are told in one of four ages of the sketches.
    @Test func requestsThatWereNotToldEndNoWait() {
        var learner = ReuseLearner(slotCount: 1_024, rates: rates)
        let keys = UInt64(0)..<1_000
        for key in keys { learner.note(key, frequency: 2, at: key) }
        learner.fade(to: 4)
        for key in keys { learner.note(key, frequency: 2, at: 1_000_000 + key) }
        learner.computeIfDue(at: 1_001_000)
        let (told, unknown) = (
            rates.rate(frequencyClass: 1, age: 900_000), rates.rate(frequencyClass: 2, age: 900_000)
        )
        #expect(told <= unknown, "no key was seen to return at that age")
    }

    /// A hit beyond the count of its slot is not told: the key seems to rest until its slot's turn.
    @Test func waitThatCannotBeSeenToEndDoesNotBegin() {
        var learner = ReuseLearner(slotCount: 1_024, rates: rates)
        for key in UInt64(0)..<1_000 {
            learner.note(key, frequency: 2, at: key, isNextTold: false)
        }
        for key in UInt64(0)..<1_000 { learner.note(key, frequency: 2, at: 1_000_000 + key) }
        learner.computeIfDue(at: 1_001_000)
        #expect(
            rates.rate(frequencyClass: 1, age: 900_000)
                <= rates.rate(frequencyClass: 2, age: 900_000)
        )
    }
}
