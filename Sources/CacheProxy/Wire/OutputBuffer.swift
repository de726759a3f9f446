import HTTPCaching
import Platform

/// Output bytes, gathered in one piece of memory that is used again.
///
/// Belongs to one thread, and is deliberately not `Sendable`.
///
/// Invariants:
/// 1. `count <= capacity`, and `base` points to `capacity` bytes that this object owns.
final class OutputBuffer {
    private var base: UnsafeMutableRawPointer
    private var capacity: Int
    private(set) var count = 0

    init(capacity: Int = 16 * 1024) {
        self.capacity = max(64, capacity)
        base = .allocate(byteCount: self.capacity, alignment: 16)
    }

    deinit { base.deallocate() }

    /// The bytes written, valid until the next change.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

    func removeAll() { count = 0 }

    func truncate(to count: Int) {
        precondition(count <= self.count)
        self.count = count
    }

    /// Room for `extra` more bytes; the caller writes them and calls `advance`.
    @inline(__always)
    func room(for extra: Int) -> UnsafeMutableRawPointer {
        if capacity - count < extra { grow(by: extra) }
        return base + count
    }

    @inline(__always)
    func advance(by extra: Int) {
        precondition(count + extra <= capacity)
        count += extra
    }

    @inline(__always)
    func append(_ literal: StaticString) {
        let extra = literal.utf8CodeUnitCount
        room(for: extra).copyMemory(from: literal.utf8Start, byteCount: extra)
        count += extra
    }

    @inline(__always)
    func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        room(for: bytes.count).copyMemory(from: source, byteCount: bytes.count)
        count += bytes.count
    }

    /// Appends a field line with its CRLF.
    @inline(__always)
    func append(field name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        let target = room(for: name.count + value.count + 4)
        if let source = name.baseAddress { target.copyMemory(from: source, byteCount: name.count) }
        target.storeBytes(of: 0x3A, toByteOffset: name.count, as: UInt8.self)
        target.storeBytes(of: 0x20, toByteOffset: name.count + 1, as: UInt8.self)
        if let source = value.baseAddress {
            (target + name.count + 2).copyMemory(from: source, byteCount: value.count)
        }
        let end = name.count + value.count + 2
        target.storeBytes(of: 0x0D, toByteOffset: end, as: UInt8.self)
        target.storeBytes(of: 0x0A, toByteOffset: end + 1, as: UInt8.self)
        count += end + 2
    }

    func append(text: String) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    @inline(__always)
    func append(byte: UInt8) {
        room(for: 1).storeBytes(of: byte, as: UInt8.self)
        count += 1
    }

    func append(decimal number: Int) {
        assert(number >= 0, "a length or a status")
        let room = UnsafeMutableRawBufferPointer(
            start: room(for: DecimalText.bytesMax),
            count: DecimalText.bytesMax
        )
        count += DecimalText.write(number, into: room)
    }

    func append(hexadecimal number: Int) {
        precondition(number >= 0)
        var shift = 60
        while shift > 0, number >> shift == 0 { shift -= 4 }
        while shift >= 0 {
            let digit = UInt8(truncatingIfNeeded: number >> shift & 0xF)
            append(byte: digit < 10 ? 0x30 + digit : 0x61 + digit - 10)
            shift -= 4
        }
    }

    private func grow(by extra: Int) {
        let larger = max(capacity * 2, count + extra)
        let memory = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
        memory.copyMemory(from: base, byteCount: count)
        base.deallocate()
        base = memory
        capacity = larger
    }
}
