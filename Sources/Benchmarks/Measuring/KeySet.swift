/// The keys of a workload: texts of equal length in one array, made before the measurement.
///
/// Both sides of a comparison use the same keys: `prefix` followed by the number in decimal, padded
/// with zeros to `keySizeBytes`, which is similar to a URL.
package struct KeySet: Sendable {
    package static let prefix = "https://example.test/assets/"
    /// The usual length of a URL.
    package static let keySizeBytes = 46

    package let count: Int
    private let bytes: [UInt8]

    package init(count: Int) {
        precondition(count >= 1)
        self.count = count
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count * Self.keySizeBytes)
        for number in 0..<count { bytes += Self.text(number).utf8 }
        self.bytes = bytes
    }

    /// The key with the given number, as both sides of a comparison write it.
    package static func text(_ number: Int) -> String {
        let digits = String(number)
        let zeros = keySizeBytes - prefix.utf8.count - digits.utf8.count
        precondition(zeros >= 0)
        return prefix + String(repeating: "0", count: zeros) + digits
    }

    /// Calls `body` with all keys; key `n` begins at `n * keySizeBytes`.
    package func withBytes<Result>(
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        try bytes.withUnsafeBytes(body)
    }
}

extension UnsafeRawBufferPointer {
    /// The key with the given number in the bytes of a `KeySet`.
    func key(_ number: Int) -> UnsafeRawBufferPointer {
        let start = number * KeySet.keySizeBytes
        return UnsafeRawBufferPointer(rebasing: self[start..<start + KeySet.keySizeBytes])
    }
}
