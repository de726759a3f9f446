import CacheTestSupport
import Testing

@testable import CurlOrigin

/// Which transfers begin within the limits of connections.
@Suite struct StartLineTests {
    private func line(perHost: Int, total: Int) -> StartLine {
        StartLine(.init(maximumPerHost: perHost, maximumTotal: total))
    }

    private func id(_ number: UInt64) -> TransferID { TransferID(number: number) }

    @Test func placeOfOneHostGoesToTheNextOfThatHost() {
        let line = line(perHost: 1, total: 8)
        #expect(line.enter(id(1), for: "a") == .counted)
        #expect(line.enter(id(2), for: "b") == .counted)
        for number in 3...5 { #expect(!line.enter(id(UInt64(number)), for: "a").hasBegun) }
        #expect(!line.enter(id(6), for: "b").hasBegun)
        #expect(line.next() == nil)
        line.leave(.counted, for: "b")
        #expect(line.next()?.transfer == id(6), "the three of a wait before it")
        #expect(line.next() == nil)
        line.leave(.counted, for: "a")
        #expect(line.next()?.transfer == id(3))
        #expect(line.waiterCount == 2)
    }

    @Test func placeOfAllHostsGoesToTheOneThatWaitsLongest() {
        let line = line(perHost: 2, total: 2)
        #expect(line.enter(id(1), for: "a") == .counted)
        #expect(line.enter(id(2), for: "a") == .counted)
        let places = ["b", "c", "a"].enumerated().map { line.enter(id(UInt64($0 + 3)), for: $1) }
        line.leave(places[0], for: "b")
        line.leave(.counted, for: "a")
        #expect(line.next()?.transfer == id(4))
        #expect(line.next() == nil)
    }

    @Test func transfersOfOneConnectionAreNotCounted() {
        let line = line(perHost: 1, total: 1)
        #expect(line.enter(id(1), for: "a") == .counted)
        for number in 2...3 { #expect(!line.enter(id(UInt64(number)), for: "a").hasBegun) }
        line.learn(isMultiplexed: true, of: "a")
        #expect(line.next()?.place == .uncounted)
        #expect(line.next()?.place == .uncounted)
        #expect(line.enter(id(4), for: "a") == .uncounted)
        #expect(!line.enter(id(5), for: "b").hasBegun, "the first one still counts")
        line.learn(isMultiplexed: false, of: "a")
        #expect(!line.enter(id(6), for: "a").hasBegun)
        line.leave(.counted, for: "a")
        #expect(line.next()?.transfer == id(5))
    }

    /// After each step no transfer waits that could begin, and no limit is exceeded.
    @Test(arguments: 0..<64 as Range<UInt64>)
    func placesAreNeitherLostNorGivenTwice(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let perHost = Int.random(in: 1...3, using: &random)
        let total = Int.random(in: 1...5, using: &random)
        let line = line(perHost: perHost, total: total)
        let names = ["a", "b", "c"]
        var standing: [(id: TransferID, name: String, place: StartLine.Place)] = []
        for step in 1...400 {
            if Bool.random(using: &random) || standing.isEmpty {
                let name = names[Int.random(in: 0..<3, using: &random)]
                let transfer = id(UInt64(step))
                standing.append((transfer, name, line.enter(transfer, for: name)))
            } else {
                let index = Int.random(in: 0..<standing.count, using: &random)
                let ended = standing.remove(at: index)
                line.leave(ended.place, for: ended.name)
            }
            while let next = line.next() {
                guard let index = standing.firstIndex(where: { $0.id == next.transfer }) else {
                    Issue.record("\(next.transfer) begins after it has left")
                    return
                }
                #expect(!standing[index].place.hasBegun)
                standing[index].place = next.place
            }
            let begun = standing.filter(\.place.hasBegun)
            #expect(begun.count <= total && line.waiterCount == standing.count - begun.count)
            for name in names {
                let count = begun.count { $0.name == name }
                #expect(count <= perHost)
                let waits = standing.contains { $0.name == name && !$0.place.hasBegun }
                #expect(!waits || count == perHost || begun.count == total)
            }
        }
    }
}
