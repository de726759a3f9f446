import CacheTestSupport
import Synchronization

/// The one source of chance of a simulation; shared by everything that happens in it.
final class Dice: Sendable {
    private let random: Mutex<SeededRandom>

    init(seed: UInt64) { random = Mutex(SeededRandom(seed: seed &* 0x9E37_79B9 ^ 0x51_7CC1)) }

    /// A number below `bound`.
    func below(_ bound: Int) -> Int { random.withLock { Int.random(in: 0..<bound, using: &$0) } }

    /// True once in `times`.
    func oneIn(_ times: Int) -> Bool { below(times) == 0 }

    func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }
}
