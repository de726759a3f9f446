/// The class of an entry: its frequency and its size, each rounded.
///
/// Entries of one class are worth the same when they are equally old, so each class has a queue. Only
/// the oldest entry of each queue is considered as the next victim: where the worth rises with the
/// age, as in a loop, that is an approximation.
struct EntryClass {
    /// Classes of frequency; the last begins at nine of `FrequencySketch.frequencyMax`.
    static let frequencies = 6
    /// Sizes from 2^6 bytes in powers of two; the last has all from 2^29 bytes.
    static let sizes = 24
    /// A number for each class of size.
    typealias PerSize = InlineArray<24, Double>
    static let count = frequencies * sizes
    private static let sizeExponentMin = 6

    let frequency: Int
    let size: Int

    /// The number of the class, ordered by frequency, then by size.
    var number: Int { frequency * Self.sizes + size }

    /// The least bytes of an entry of that class of size.
    static func bytesMin(ofSize size: Int) -> Int { 1 << (size + sizeExponentMin) }

    init(frequency: Int, chargeBytes: Int) {
        self.frequency = Self.frequencyClass(frequency)
        let exponent = Int.bitWidth - 1 - max(1, chargeBytes).leadingZeroBitCount
        size = max(0, min(Self.sizes - 1, exponent - Self.sizeExponentMin))
    }

    init(number: Int) {
        (frequency, size) = number.quotientAndRemainder(dividingBy: Self.sizes)
    }

    /// The class of a frequency: 1, 2, 3, 4 to 5, 6 to 8, and more.
    static func frequencyClass(_ frequency: Int) -> Int {
        switch frequency {
        case ...1: 0
        case 2: 1
        case 3: 2
        case 4...5: 3
        case 6...8: 4
        default: 5
        }
    }

    /// The middle frequency of each class.
    static let middles: InlineArray<6, Double> = [1, 2, 3, 4.5, 7, 12]
}
