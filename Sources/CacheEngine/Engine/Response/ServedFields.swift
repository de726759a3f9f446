import HTTPCaching
import Synchronization

/// The fields of a response from an entry: the entry's lines in place, followed by the response's
/// own.
///
/// Nothing is copied or written until the fields are read.
struct ServedFields: Sendable {
    /// Lines as `FieldSection` encodes them, which were checked when they were stored.
    private let shared: ByteChunk
    private let own: OwnLines
    /// Whether the shared lines that describe the content are left out, as a 304 does.
    private var describesContent = true

    init(_ shared: ByteChunk, _ own: OwnLines) {
        self.shared = shared
        self.own = own
    }

    /// Calls `read` with the shared lines, and then with the others.
    func forEachRun(_ read: (UnsafeRawBufferPointer) -> Void) {
        shared.withUnsafeBytes { lines in
            if describesContent {
                read(lines)
            } else {
                Conditional.forEachNotModifiedRun(ofStored: lines, read)
            }
        }
        own.forEachRun(read)
    }

    /// All fields, as a section of their own.
    var section: FieldSection {
        var section = FieldSection()
        section.reserveCapacity(bytesUsual)
        forEachRun { section.append(trusted: $0) }
        return section
    }

    /// The fields of a 304 about the response with these fields.
    var ofNotModified: ServedFields {
        var fields = self
        fields.describesContent = false
        return fields
    }

    /// The bytes of all lines, if the response's own are as short as usual.
    var bytesUsual: Int { shared.count + OwnLines.bytesUsual }
}

/// The lines that a response adds to the stored ones: `Age` and `Cache-Status`.
///
/// They are written when they are read: most responses go straight to a socket, or only their body
/// is read.
struct OwnLines: Sendable {
    private let status: Status
    private let ageSeconds: OptionalNumber<UInt32>

    /// The content of `Cache-Status` (RFC 9211).
    enum Status: Sendable {
        case omitted
        /// A hit; written without building a string first.
        case hit(StatusName, remainingSeconds: Int)
        indirect case other(StatusName, CacheStatus)
    }

    init(ageSeconds: Int?, _ status: Status) {
        self.ageSeconds = OptionalNumber(ageSeconds)
        self.status = status
    }

    /// Calls `read` with the encoded lines, run by run.
    func forEachRun(_ read: (UnsafeRawBufferPointer) -> Void) {
        if let ageSeconds = ageSeconds.value { Self.withAgeLine(ageSeconds, read) }
        switch status {
        case .omitted: break
        case .hit(let name, let remaining): withHitLine(name, remaining, read)
        case .other(let name, let status): Self.withLine(name, status, read)
        }
    }

    /// `fields` followed by the own lines of a response that was fetched.
    static func section(
        after fields: FieldSection,
        ageSeconds: Int?,
        _ name: StatusName,
        _ status: CacheStatus?
    ) -> FieldSection {
        var section = fields.withUnsafeBytes { FieldSection(trusted: $0, reserving: bytesUsual) }
        if let ageSeconds { withAgeLine(ageSeconds) { section.append(trusted: $0) } }
        if let status { withLine(name, status) { section.append(trusted: $0) } }
        return section
    }

    /// The bytes of the lines, if they are as short as usual.
    static let bytesUsual = 128

    private static func withAgeLine(_ ageSeconds: Int, _ read: (UnsafeRawBufferPointer) -> Void) {
        let room = FieldSection.lineBytes(around: "Age") + DecimalText.bytesMax
        withUnsafeTemporaryAllocation(byteCount: room, alignment: 1) { target in
            let end = FieldSection.writeLine(trusted: "Age", to: target, at: 0) {
                DecimalText.write(ageSeconds, into: $0)
            }
            read(UnsafeRawBufferPointer(rebasing: target[..<end]))
        }
    }

    private static func withLine(
        _ name: StatusName,
        _ status: CacheStatus,
        _ read: (UnsafeRawBufferPointer) -> Void
    ) {
        status.withParameters { parameters in
            let valueBytes = name.count + parameters.count
            let room = FieldSection.lineBytes(around: "Cache-Status") + valueBytes
            withUnsafeTemporaryAllocation(byteCount: room, alignment: 1) { target in
                let end = FieldSection.writeLine(trusted: "Cache-Status", to: target, at: 0) {
                    name.write(to: $0)
                    $0.copy(parameters, at: name.count)
                    return valueBytes
                }
                read(UnsafeRawBufferPointer(rebasing: target[..<end]))
            }
        }
    }

    private static let hit = StaticString("; hit; ttl=")

    private func withHitLine(
        _ name: StatusName,
        _ remainingSeconds: Int,
        _ read: (UnsafeRawBufferPointer) -> Void
    ) {
        let room =
            FieldSection.lineBytes(around: "Cache-Status") + name.count
            + Self.hit.utf8CodeUnitCount + DecimalText.bytesMax
        withUnsafeTemporaryAllocation(byteCount: room, alignment: 1) { target in
            let end = FieldSection.writeLine(trusted: "Cache-Status", to: target, at: 0) { value in
                name.write(to: value)
                var count = name.count
                Self.hit.withUTF8Buffer { value.copy(UnsafeRawBufferPointer($0), at: count) }
                count += Self.hit.utf8CodeUnitCount
                let digits = UnsafeMutableRawBufferPointer(rebasing: value[count...])
                return count + DecimalText.write(remainingSeconds, into: digits)
            }
            read(UnsafeRawBufferPointer(rebasing: target[..<end]))
        }
    }
}

/// The name of a cache as `Cache-Status` spells it (RFC 9211 §2).
///
/// Every response carries it. A string would be retained and released with each response, by all
/// threads on one cache line. The bytes of a name are therefore kept until the process ends: one
/// copy of each name that an application has given to a cache.
///
/// `@unchecked Sendable`: the bytes are written before the name exists, never change and are never
/// freed.
struct StatusName: @unchecked Sendable {
    /// The number of bytes, as an `Int`, followed by the bytes: a response carries one word.
    private let base: UnsafeRawPointer

    /// The names in use so far, by their text.
    private static let known = Mutex<[String: StatusName]>([:])

    /// The name `name`, as a token or a quoted string.
    init(_ name: String) {
        let text = CacheStatus.identifierText(name)
        self = Self.known.withLock { known in
            if let name = known[text] { return name }
            let name = StatusName(copying: text)
            known[text] = name
            return name
        }
    }

    private init(copying text: String) {
        let (start, count) = (MemoryLayout<Int>.size, text.utf8.count)
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: start + count, alignment: 8)
        copy.storeBytes(of: count, as: Int.self)
        UnsafeMutableRawBufferPointer(rebasing: copy[start...]).copyBytes(from: text.utf8)
        // The buffer is not empty, so it has an address.
        base = UnsafeRawPointer(copy.baseAddress.unsafelyUnwrapped)
        assert(self.count == count, "reads as written")
    }

    var count: Int { base.load(as: Int.self) }

    /// Copies the name to the front of `target`.
    func write(to target: UnsafeMutableRawBufferPointer) {
        let start = base + MemoryLayout<Int>.size
        target.copy(UnsafeRawBufferPointer(start: start, count: count), at: 0)
    }
}
