/// A reference-counted run of bytes in one allocation.
///
/// The storage does not record its length, which would cost eight bytes for each entry. An entry's
/// head states the length, and a chunk has its range.
///
/// The creator writes the bytes before it shares the storage; they are read-only afterwards. The
/// value types around a storage can therefore be `Sendable`.
package final class ByteStorage: ManagedBuffer<Void, UInt8> {
    /// Allocates `count` bytes and lets `fill` write them.
    package static func make(
        count: Int,
        _ fill: (UnsafeMutableRawBufferPointer) throws -> Void
    ) rethrows -> ByteStorage {
        precondition(count >= 0)
        let buffer = ByteStorage.create(minimumCapacity: count) { _ in }
        let storage = unsafeDowncast(buffer, to: ByteStorage.self)
        try storage.withUnsafeMutablePointerToElements { start in
            try fill(UnsafeMutableRawBufferPointer(start: start, count: count))
        }
        return storage
    }

    /// The first `count` bytes, valid while the storage is held.
    ///
    /// The caller ensures that `count` bytes exist, and keeps `self` alive while it uses the
    /// pointer (`withExtendedLifetime`).
    package func unsafeBytes(_ count: Int) -> UnsafeRawBufferPointer {
        withUnsafeMutablePointerToElements { UnsafeRawBufferPointer(start: $0, count: count) }
    }
}
