/// A reference-counted run of bytes in one allocation.
///
/// It does not know its length, which would be eight more bytes for every entry: an entry's head
/// says it, and a chunk carries its range.
///
/// Written once by whoever creates it, before anyone else holds it; read-only from then on. That
/// is what lets the value types wrapped around it be `Sendable`.
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
    /// Callers know that there are so many, and keep `self` alive for as long as they use the
    /// pointer (`withExtendedLifetime`).
    package func unsafeBytes(_ count: Int) -> UnsafeRawBufferPointer {
        withUnsafeMutablePointerToElements { UnsafeRawBufferPointer(start: $0, count: count) }
    }
}
