/// The order in which the sides of a comparison do the work of a round.
///
/// Each side affects the next one: it leaves its data in the processor's caches and its writes to
/// the device. Over the rounds, every side has every place in the order equally often.
package enum RoundOrder {
    /// Returns the numbers of the sides, rotated by one place from round to round.
    package static func sides(_ count: Int, round: Int) -> [Int] {
        (0..<count).map { ($0 + round) % count }
    }
}
