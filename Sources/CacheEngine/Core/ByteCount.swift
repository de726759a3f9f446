/// A size in bytes, as a type that cannot be confused with a count of entries.
public struct ByteCount: Hashable, Comparable, Sendable {
    /// The number of bytes.
    public let bytes: Int

    /// A size of `bytes` bytes; negative values count as zero.
    public init(_ bytes: Int) { self.bytes = max(0, bytes) }

    /// Zero bytes.
    public static let zero = Self(0)
    /// A size in bytes.
    public static func bytes(_ count: Int) -> Self { Self(count) }
    /// A size in units of 1,024 bytes.
    public static func kilobytes(_ count: Int) -> Self { Self(scaling: count, by: 10) }
    /// A size in units of 1,048,576 bytes.
    public static func megabytes(_ count: Int) -> Self { Self(scaling: count, by: 20) }
    /// A size in units of 1,073,741,824 bytes.
    public static func gigabytes(_ count: Int) -> Self { Self(scaling: count, by: 30) }

    /// Orders sizes by their number of bytes.
    public static func < (left: Self, right: Self) -> Bool { left.bytes < right.bytes }

    private init(scaling count: Int, by shift: Int) {
        let (product, overflows) = count.multipliedReportingOverflow(by: 1 << shift)
        self.init(overflows ? .max : product)
    }
}
