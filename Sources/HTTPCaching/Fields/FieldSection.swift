/// The fields of one message, in order, in one array of bytes.
///
/// The section is one allocation, and the disk stores the same bytes. Reading a stored head
/// therefore takes one copy and no parsing.
///
///     (name length u16 · value length u32 · name · value)*      little-endian
///
/// Names keep their case and are compared without it. Two sections are equal if their bytes are.
///
/// Invariants:
/// 1. `bytes` is a sequence of whole lines, with nothing after the last.
/// 2. Every name is a token of 1 to 65,535 bytes (RFC 9110 §5.1).
/// 3. Every value is field content without CR, LF, NUL or other controls, and neither starts nor
///    ends with whitespace (RFC 9110 §5.5). A value therefore cannot inject a line into a message.
public struct FieldSection: Sendable, Hashable {
    public private(set) var bytes: [UInt8]

    public init() { bytes = [] }

    /// Copies bytes from a disk; returns `nil` unless they are exactly an encoding of this type.
    public init?(decoding source: UnsafeRawBufferPointer) {
        guard Self.isSound(source) else { return nil }
        bytes = [UInt8](source)
    }

    /// Copies bytes that this type encoded and no code changed since, with room for `extra` more.
    public init(trusted source: UnsafeRawBufferPointer, reserving extra: Int) {
        bytes = []
        bytes.reserveCapacity(source.count + extra)
        bytes.append(contentsOf: source)
    }

    /// The bytes of a line without its value.
    public static func lineBytes(around name: StaticString) -> Int { 6 + name.utf8CodeUnitCount }

    /// Writes a line at `offset`.
    ///
    /// `writeValue` writes the value, which must be digits, tokens or other field content, and
    /// returns its number of bytes.
    ///
    /// - Returns: The offset of the line's end.
    public static func writeLine(
        trusted name: StaticString,
        to target: UnsafeMutableRawBufferPointer,
        at offset: Int,
        writeValue: (UnsafeMutableRawBufferPointer) -> Int
    ) -> Int {
        let valueStart = offset + lineBytes(around: name)
        let count = writeValue(.init(rebasing: target[valueStart...]))
        target.storeBytes(
            of: UInt16(name.utf8CodeUnitCount).littleEndian,
            toByteOffset: offset,
            as: UInt16.self
        )
        target.storeBytes(
            of: UInt32(count).littleEndian,
            toByteOffset: offset + 2,
            as: UInt32.self
        )
        let nameBytes = UnsafeRawBufferPointer(
            start: name.utf8Start,
            count: name.utf8CodeUnitCount
        )
        UnsafeMutableRawBufferPointer(rebasing: target[(offset + 6)...]).copyMemory(from: nameBytes)
        assert(valueStart + count <= target.count, "the line has room")
        return valueStart + count
    }

    /// Makes a section of these lines; skips a line that is invalid.
    public init(_ lines: [(String, String)]) {
        bytes = []
        for (name, value) in lines { append(name, value) }
    }

    public var isEmpty: Bool { bytes.isEmpty }

    /// The number of lines.
    public var count: Int {
        var count = 0
        forEachLine { _ in count += 1 }
        return count
    }

    public mutating func reserveCapacity(_ byteCount: Int) { bytes.reserveCapacity(byteCount) }

    @inlinable public func withUnsafeBytes<Result>(
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        try bytes.withUnsafeBytes(body)
    }

    func forEachLine(_ body: (FieldCursor.Line) -> Void) {
        bytes.withUnsafeBytes { buffer in
            var cursor = FieldCursor(buffer)
            while let line = cursor.next() { body(line) }
        }
    }

    #if ENGINE_CHECKS
        public func checkInvariants() {
            precondition(bytes.withUnsafeBytes { Self.isSound($0) })
        }
    #endif

    private static func isSound(_ source: UnsafeRawBufferPointer) -> Bool {
        var cursor = FieldCursor(source)
        while let line = cursor.next() {
            guard isValidName(line.name), isValidValue(line.value) else { return false }
        }
        return cursor.offset == source.count
    }
}

// MARK: - Valid names and values

extension FieldSection {
    public static let nameBytesMax = Int(UInt16.max)
    public static let valueBytesMax = Int(UInt32.max)

    public static func isValidName(_ name: String) -> Bool { name.withByteRun { isValidName($0) } }

    /// Whether `value` can be sent unchanged: no controls, no whitespace around it.
    public static func isValidValue(_ value: String) -> Bool {
        value.withByteRun { isValidValue($0) }
    }

    public static func isValidName(_ name: ByteRun) -> Bool {
        guard !name.isEmpty, name.count <= nameBytesMax else { return false }
        if name.everyWord({ $0.areLettersOrHyphens }) { return true }
        for index in 0..<name.count where !name[index].isToken { return false }
        return true
    }

    public static func isValidValue(_ value: ByteRun) -> Bool {
        guard value.count <= valueBytesMax else { return false }
        guard !value.isEmpty else { return true }
        guard !value[0].isOptionalWhitespace, !value[value.count - 1].isOptionalWhitespace else {
            return false
        }
        if value.everyWord({ !$0.hasControl }) { return true }
        for index in 0..<value.count where !value[index].isFieldContent { return false }
        return true
    }
}

// MARK: - Editing

extension FieldSection {
    /// Adds a line at the end.
    ///
    /// Returns `false` and changes nothing if the name is not a token or the value has a control
    /// character.
    @discardableResult
    public mutating func append(_ name: String, _ value: String) -> Bool {
        name.withByteRun { name in value.withByteRun { value in append(name: name, value: value) } }
    }

    @discardableResult
    public mutating func append(
        nameBytes: UnsafeRawBufferPointer,
        valueBytes: UnsafeRawBufferPointer
    ) -> Bool {
        append(name: ByteRun(nameBytes), value: ByteRun(valueBytes))
    }

    /// The bytes must not belong to this section: appending may move them.
    @discardableResult
    public mutating func append(name: ByteRun, value: ByteRun) -> Bool {
        let value = value.trimmed
        guard Self.isValidName(name), Self.isValidValue(value) else { return false }
        appendUnchecked(name: name, value: value)
        return true
    }

    /// Adds a line of an origin, with a space in place of each control in the value (RFC 9110 §5.5).
    ///
    /// A line that is left out would take its restriction with it: `no-store`, a cookie, `Vary`.
    /// Returns `false` and changes nothing if the name is not a token. The bytes must not belong to
    /// this section.
    @discardableResult
    public mutating func append(name: ByteRun, cleaning value: ByteRun) -> Bool {
        guard Self.isValidName(name) else { return false }
        let trimmed = value.trimmed
        if Self.isValidValue(trimmed) {
            appendUnchecked(name: name, value: trimmed)
            return true
        }
        let cleaned = value.buffer.map { $0.isFieldContent ? $0 : .space }
        return cleaned.withUnsafeBytes { append(name: name, value: ByteRun($0)) }
    }

    /// Adds lines that this type encoded and no code changed since.
    public mutating func append(trusted lines: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: lines)
    }

    /// Replaces all lines of that name by one line, at the place of the first.
    @discardableResult
    public mutating func set(_ name: String, _ value: String) -> Bool {
        name.withByteRun { name in value.withByteRun { value in set(name: name, value: value) } }
    }

    /// The bytes must not belong to this section.
    @discardableResult
    public mutating func set(name: ByteRun, value: ByteRun) -> Bool {
        let value = value.trimmed
        guard Self.isValidName(name), Self.isValidValue(value) else { return false }
        guard contains(name) else {
            appendUnchecked(name: name, value: value)
            return true
        }
        var hasPlaced = false
        rebuild { line in
            guard line.name.equalsIgnoringCase(name) else { return .keep }
            defer { hasPlaced = true }
            return hasPlaced ? .drop : .replace(name: name, value: value)
        }
        return true
    }

    public mutating func remove(_ name: String) {
        name.withByteRun { name in removeAll { $0.equalsIgnoringCase(name) } }
    }

    public mutating func remove(lowercased name: StaticString) {
        removeAll { $0.equals(lowercased: name) }
    }

    /// Removes every line whose name satisfies the predicate.
    public mutating func removeAll(where isDropped: (ByteRun) -> Bool) {
        removeLines { isDropped($0.name) }
    }

    mutating func removeLines(where isDropped: (FieldCursor.Line) -> Bool) {
        rebuild { isDropped($0) ? .drop : .keep }
    }

    private enum Fate {
        case keep, drop
        case replace(name: ByteRun, value: ByteRun)
    }

    /// Copies the lines that are kept, run by run; copies nothing if all are.
    private mutating func rebuild(_ decide: (FieldCursor.Line) -> Fate) {
        let old = bytes
        var new = FieldSection()
        /// The start of the lines that are kept and not copied yet.
        var start = 0
        old.withUnsafeBytes { buffer in
            var cursor = FieldCursor(buffer)
            while let line = cursor.next() {
                let fate = decide(line)
                if case .keep = fate { continue }
                if new.bytes.isEmpty { new.reserveCapacity(old.count) }
                new.append(trusted: .init(rebasing: buffer[start..<line.extent.lowerBound]))
                if case .replace(let name, let value) = fate {
                    new.appendUnchecked(name: name, value: value)
                }
                start = line.extent.upperBound
            }
            guard start > 0 else { return }
            new.append(trusted: .init(rebasing: buffer[start...]))
        }
        if start > 0 { self = new }
    }

    /// The capacity in bytes that the first line reserves; most sections need no more.
    private static let firstBytes = 256

    private mutating func appendUnchecked(name: ByteRun, value: ByteRun) {
        let size = FieldCursor.lineHeaderBytes + name.count + value.count
        if bytes.capacity < bytes.count + size {
            bytes.reserveCapacity(max(bytes.count + size, 2 * bytes.capacity, Self.firstBytes))
        }
        bytes.append(addingCapacity: size) { room in
            room.withUnsafeMutableBufferPointer { target, count in
                let line = UnsafeMutableRawBufferPointer(target)
                line.storeBytes(of: UInt16(name.count).littleEndian, as: UInt16.self)
                line.storeBytes(
                    of: UInt32(value.count).littleEndian,
                    toByteOffset: 2,
                    as: UInt32.self
                )
                let nameStart = FieldCursor.lineHeaderBytes
                let valueStart = nameStart + name.count
                UnsafeMutableRawBufferPointer(rebasing: line[nameStart...])
                    .copyMemory(from: name.buffer)
                UnsafeMutableRawBufferPointer(rebasing: line[valueStart...])
                    .copyMemory(from: value.buffer)
                count = size
            }
        }
    }
}
