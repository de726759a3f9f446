import CacheTestSupport
import Synchronization

/// The only source of randomness in a simulation, shared by all its parts.
final class Dice: Sendable {
    private let random: Mutex<SeededRandom>

    init(seed: UInt64) { random = Mutex(SeededRandom(seed: seed &* 0x9E37_79B9 ^ 0x51_7CC1)) }

    /// Returns a number from 0 up to `bound`, exclusive.
    func below(_ bound: Int) -> Int { random.withLock { Int.random(in: 0..<bound, using: &$0) } }

    /// Returns `true` with a probability of 1 in `times`.
    func oneIn(_ times: Int) -> Bool { below(times) == 0 }

    func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }
}
