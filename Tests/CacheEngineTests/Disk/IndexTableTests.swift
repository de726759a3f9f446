import CacheTestSupport
import Testing

@testable import CacheEngine

@Suite struct IndexTableTests {
    @Test(arguments: 0..<UInt64(64))
    func answersAsADictionaryDoes(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var index = DiskIndex()
        var model: [UInt64: UInt64] = [:]
        // Few tables with few home slots give long probe runs and equal identities.
        let spread: UInt64 = seed % 2 == 0 ? 0xFFFF : 0x0300_0000_0000_03FF
        for step in 0..<1_500 {
            let identity = random.next() & spread
            switch random.next() % 8 {
            case 0..<5:
                let place = random.next() | 1
                let old = index.set(identity, to: RecordPlace(bits: place))
                #expect(old.bits == model[identity] ?? 0)
                model[identity] = place
            case 5:
                #expect(index.remove(identity).bits == model[identity] ?? 0)
                model[identity] = nil
            case 6:
                let place = random.next() | 1
                let isThere = index.replace(identity, with: RecordPlace(bits: place))
                #expect(isThere == (model[identity] != nil))
                if isThere { model[identity] = place }
            default:
                guard step % 100 == 0 else { continue }
                index.removeAll { $0.identity % 3 == 0 }
                model = model.filter { $0.key % 3 != 0 }
            }
            #expect(index.place(of: identity).bits == model[identity] ?? 0)
        }
        var seen: [UInt64: UInt64] = [:]
        index.forEach { seen[$0.identity] = $0.place.bits }
        #expect(seen == model && index.count == model.count)
        #if ENGINE_CHECKS
            index.checkInvariants()
        #endif
    }

    @Test func staysWithinItsBytesPerEntryAtEverySize() {
        var index = DiskIndex()
        var random = SeededRandom(seed: 7)
        var worst = 0.0
        for count in 1...400_000 {
            _ = index.set(random.next(), to: RecordPlace(bits: 1))
            if count > 200_000, count % 1_000 == 0 {
                worst = max(worst, Double(index.allocatedBytes) / Double(index.count))
            }
        }
        #expect(worst <= 21.3, "\(worst) bytes an entry")
    }
}
