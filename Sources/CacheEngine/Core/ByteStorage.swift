/// A reference-counted run of bytes, allocated in one piece with its count.
///
/// Written once by whoever creates it, before anyone else holds it; read-only from then on. That
/// is what lets the value types wrapped around it be `Sendable`.
package final class ByteStorage: ManagedBuffer<Int, UInt8> {
    /// Allocates `count` bytes and lets `fill` write them.
    package static func make(
        count: Int,
        _ fill: (UnsafeMutableRawBufferPointer) throws -> Void
    ) rethrows -> ByteStorage {
        precondition(count >= 0)
        let buffer = ByteStorage.create(minimumCapacity: count) { _ in count }
        let storage = unsafeDowncast(buffer, to: ByteStorage.self)
        try fill(storage.mutableBytes)
        return storage
    }

    /// How many bytes there are.
    ///
    /// Read through a pointer: it never changes once there is somebody to read it.
    package var count: Int { withUnsafeMutablePointerToHeader { $0.pointee } }

    /// The bytes, valid while the storage is held.
    ///
    /// Callers keep `self` alive for as long as they use the pointer (`withExtendedLifetime`).
    package var unsafeBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(mutableBytes) }

    private var mutableBytes: UnsafeMutableRawBufferPointer {
        withUnsafeMutablePointers { count, elements in
            UnsafeMutableRawBufferPointer(start: elements, count: count.pointee)
        }
    }
}

extension ByteStorage {
    /// Allocates room for `capacity` bytes; `fill` writes some and says how many it keeps, from
    /// the start, or nil to give them all up.
    package static func make(
        capacity: Int,
        _ fill: (UnsafeMutableRawBufferPointer) throws -> Int?
    ) rethrows -> ByteStorage? {
        var kept: Int?
        let storage = try make(count: capacity) { kept = try fill($0) }
        guard let kept else { return nil }
        precondition(kept >= 0 && kept <= capacity)
        storage.header = kept
        return storage
    }
}
