/// Learns from sampled requests how soon entries are requested again, and sets the `ReuseRates`.
///
/// It remembers the last request for some keys. The next request for the key tells that an entry of
/// that class was requested again at that age. A key that has to leave before tells that an entry got
/// that old without; so does each key that still waits when the rates are computed.
///
/// Not `Copyable`: it owns its slabs.
struct ReuseLearner: ~Copyable {
    /// A key whose next request is awaited.
    private struct Awaited {
        var identity: UInt64 = 0
        var since: UInt64 = 0
        /// The class of the frequency; negative in a place without a key.
        var frequencyClass = -1
    }

    /// The entries of a class whose wait ended in a step of age.
    private struct Ends {
        var hits = 0.0
        /// The ends with and without a hit.
        var count = 0.0
        /// The time that they waited within the step.
        var time = 0.0
    }

    /// The keys that are awaited for each slot of a shadow cache.
    private static let placesPerSlot = 2
    private static let endCount = EntryClass.frequencies * AgeScale.steps
    private static let samplesPerComputation = 1000
    /// The hits on which the first guess of a rate counts.
    private static let guessedHits = 4.0

    private let rates: ReuseRates
    private let placeCount: Int
    private let places: UnsafeMutablePointer<Awaited>
    private let ends: UnsafeMutablePointer<Ends>
    private var samples = 0
    private var halvings: UInt64 = 0

    init(slotCount: Int, rates: ReuseRates) {
        self.rates = rates
        placeCount = slotCount * Self.placesPerSlot
        places = .allocate(capacity: placeCount)
        places.initialize(repeating: Awaited(), count: placeCount)
        ends = .allocate(capacity: Self.endCount)
        ends.initialize(repeating: Ends(), count: Self.endCount)
        compute(at: 0)
    }

    deinit {
        places.deallocate()
        ends.deallocate()
    }

    static func sizeBytes(slotCount: Int) -> Int {
        slotCount * placesPerSlot * MemoryLayout<Awaited>.stride
            + endCount * MemoryLayout<Ends>.stride
    }

    /// Notes a request for the key of an entry of that frequency.
    ///
    /// The next request of a key whose hits are full is not told: then no wait begins.
    mutating func note(
        _ identity: UInt64,
        frequency: Int,
        at now: UInt64,
        isNextTold: Bool = true
    ) {
        let place = Int((identity &* 0x9E37_79B9_7F4A_7C15) >> 32) % placeCount
        end(places[place], at: now, isHit: places[place].identity == identity)
        let frequencyClass = EntryClass.frequencyClass(frequency)
        places[place] =
            isNextTold
            ? Awaited(identity: identity, since: now, frequencyClass: frequencyClass) : Awaited()
        samples += 1
    }

    /// Sets the rates if enough was noted since they were set.
    mutating func computeIfDue(at now: UInt64) {
        guard samples >= Self.samplesPerComputation else { return }
        samples = 0
        compute(at: now)
    }

    /// Halves the counts once if the sketches, halved `due` times, have been halved since.
    ///
    /// Awaited keys are given up after a time in which requests were not told.
    mutating func fade(to due: UInt64) {
        guard due != halvings else { return }
        if due > halvings + 1, !Mutant.awaitsUntoldRequests.isOn { forget { _ in false } }
        halvings = due
        for index in 0..<Self.endCount {
            ends[index].hits /= 2
            ends[index].count /= 2
            ends[index].time /= 2
        }
    }

    /// Gives up the keys that `isKept` rejects.
    func forget(keeping isKept: (UInt64) -> Bool) {
        for place in 0..<placeCount where !isKept(places[place].identity) {
            places[place] = Awaited()
        }
    }

    /// Adds the end of a wait, or takes it back if `weight` is -1.
    private func end(_ awaited: Awaited, at now: UInt64, isHit: Bool, weight: Double = 1) {
        guard awaited.frequencyClass >= 0 else { return }
        let age = now - min(now, awaited.since)
        let step = AgeScale.step(of: age)
        let index = awaited.frequencyClass * AgeScale.steps + step
        if isHit, !Mutant.learnsNoRates.isOn { ends[index].hits += weight }
        ends[index].count += weight
        ends[index].time += weight * (Double(age) - AgeScale.start(of: step))
    }

    /// Sets all rates by the ends, and by the keys that wait at `now`.
    private func compute(at now: UInt64) {
        for place in 0..<placeCount { end(places[place], at: now, isHit: false) }
        for frequencyClass in 0..<EntryClass.frequencies { compute(frequencyClass) }
        for place in 0..<placeCount { end(places[place], at: now, isHit: false, weight: -1) }
    }

    private func compute(_ frequencyClass: Int) {
        let ends = ends + frequencyClass * AgeScale.steps
        var hits = AgeScale.PerStep(repeating: 0)
        var time = AgeScale.PerStep(repeating: 0)
        var older = 0.0
        for step in (0..<AgeScale.steps).reversed() {
            hits[step] = ends[step].hits + Self.guessedHits
            time[step] =
                ends[step].time + older * AgeScale.length(of: step)
                + Self.guessedHits / Self.guess(frequencyClass, step)
            older += ends[step].count
        }
        for step in 0..<AgeScale.steps {
            var (hitSum, timeSum, best) = (0.0, 0.0, 0.0)
            for later in step..<AgeScale.steps {
                hitSum += hits[later]
                timeSum += time[later]
                best = max(best, hitSum / timeSum)
            }
            rates.setRate(frequencyClass: frequencyClass, step: step, to: best)
        }
    }

    /// The rate before anything is known: the frequency over a multiple of the age.
    private static func guess(_ frequencyClass: Int, _ step: Int) -> Double {
        let age = AgeScale.start(of: step) + AgeScale.length(of: step) / 2
        return EntryClass.middles[frequencyClass] / (4 * max(1, age))
    }
}

/// The use of a key's entry, as far as it is counted.
struct EntryUse {
    var frequency: Int
    /// Whether the entry's count of hits is full, so that the next hit is not told.
    var isFull: Bool
}
