/// The sizes that a reply may have.
///
/// A reply beyond a limit is refused where it is announced, before memory is taken for it.
package struct RESPLimits: Hashable, Sendable {
    /// The bytes of a simple string or an error, without its type and its line end.
    package var lineBytesMax: Int
    /// The bytes of one bulk string.
    package var bulkBytesMax: Int
    /// The elements of one array.
    package var arrayCountMax: Int
    /// The arrays around a value.
    package var depthMax: Int
    /// The bytes of one whole reply: its strings, and `elementBytes` for each element of an array.
    package var totalBytesMax: Int

    /// The bytes that one element is counted with, announced elements included.
    package static let elementBytes = 32
    /// The most digits and signs of a number: those of the smallest one.
    static let numberBytesMax = 20

    package init(
        lineBytesMax: Int = 64 << 10,
        bulkBytesMax: Int = 32 << 20,
        arrayCountMax: Int = 1 << 18,
        depthMax: Int = 8,
        totalBytesMax: Int = 64 << 20
    ) {
        self.lineBytesMax = lineBytesMax
        self.bulkBytesMax = bulkBytesMax
        self.arrayCountMax = arrayCountMax
        self.depthMax = depthMax
        self.totalBytesMax = totalBytesMax
    }
}
