import Benchmarks
import CacheTestSupport
import Platform
import Testing

@Suite struct ZipfSamplerTests {
    @Test(arguments: [(10, 0.99), (1_000, 0.99), (100, 0.5), (50, 1.0), (50, 1.3), (20, 0)])
    func ranksComeAsOftenAsTheirProbabilitySays(count: Int, exponent: Double) {
        let sampler = ZipfSampler(count: count, exponent: exponent)
        var random = SeededRandom(seed: 11)
        let draws = 200_000
        var seen = [Int](repeating: 0, count: count)
        for _ in 0..<draws { seen[sampler.draw(from: &random)] += 1 }
        let weights = (1...count).map { pow(Double($0), -exponent) }
        let whole = weights.reduce(0, +)
        for rank in 0..<min(count, 20) {
            let expected = weights[rank] / whole * Double(draws)
            // Five standard deviations of a binomial count.
            #expect(abs(Double(seen[rank]) - expected) < 5 * expected.squareRoot() + 1)
        }
        #expect(seen.reduce(0, +) == draws)
    }

    @Test func oneKeyIsAlwaysDrawn() {
        let sampler = ZipfSampler(count: 1, exponent: 0.99)
        var random = SeededRandom(seed: 1)
        for _ in 0..<100 { #expect(sampler.draw(from: &random) == 0) }
    }

    @Test func theSameSeedGivesTheSameSequence() {
        let sampler = ZipfSampler(count: 500, exponent: 0.99)
        var first = SeededRandom(seed: 3)
        var second = SeededRandom(seed: 3)
        #expect(
            sampler.scatteredSequence(1_000, from: &first)
                == sampler.scatteredSequence(1_000, from: &second)
        )
    }

    @Test func theHotKeysAreScatteredOverTheNumbers() {
        let sampler = ZipfSampler(count: 10_000, exponent: 0.99)
        var random = SeededRandom(seed: 4)
        let sequence = sampler.scatteredSequence(20_000, from: &random)
        let inFirstTenth = sequence.count { $0 < 1_000 }
        #expect(inFirstTenth < 10_000)
        #expect(sequence.allSatisfy { $0 < 10_000 })
    }
}
