import HTTPCaching

/// The fields of an answer that shares its lines with others: the shared lines where they lie, and
/// behind them what belongs to this one answer, `Age` and `Cache-Status`.
///
/// Nothing is copied or written until somebody reads: most answers go straight to a socket, or are
/// looked at for their body.
struct ServedFields: Sendable {
    /// Lines as `FieldSection` encodes them; they were checked when they were stored.
    private let shared: ByteChunk
    private let status: Status
    private let ageSeconds: OptionalNumber<UInt32>

    /// What `Cache-Status` says (RFC 9211).
    enum Status: Sendable {
        case omitted
        /// By the cache's name as the field spells it; written without making a text first.
        case hit(identifier: String, remainingSeconds: Int)
        indirect case other(CacheStatus)
    }

    init(_ shared: ByteChunk, ageSeconds: Int?, _ status: Status) {
        self.shared = shared
        self.ageSeconds = OptionalNumber(ageSeconds)
        self.status = status
    }

    /// Calls `read` with the shared lines, and then with the others.
    func forEachRun(_ read: (UnsafeRawBufferPointer) -> Void) {
        shared.withUnsafeBytes(read)
        withOwnLines(read)
    }

    /// All of them as a section of its own.
    var section: FieldSection {
        var section = shared.withUnsafeBytes {
            FieldSection(trusted: $0, reserving: Self.ownBytesUsual)
        }
        withOwnLines { section.append(trusted: $0) }
        return section
    }

    private static let ownBytesUsual = 128

    private func withOwnLines(_ read: (UnsafeRawBufferPointer) -> Void) {
        switch status {
        case .omitted: withAgeLine(read)
        case .hit(let identifier, let remaining):
            withAgeLine(read)
            withHitLine(identifier, remaining, read)
        case .other(let status):
            withAgeLine(read)
            var own = FieldSection()
            own.append("Cache-Status", status.text)
            own.withUnsafeBytes(read)
        }
    }

    private func withAgeLine(_ read: (UnsafeRawBufferPointer) -> Void) {
        guard let ageSeconds = ageSeconds.value else { return }
        let room = FieldSection.lineBytes(around: "Age") + DecimalText.bytesMax
        withUnsafeTemporaryAllocation(byteCount: room, alignment: 1) { target in
            let end = FieldSection.writeLine(trusted: "Age", to: target, at: 0) {
                DecimalText.write(ageSeconds, into: $0)
            }
            read(UnsafeRawBufferPointer(rebasing: target[..<end]))
        }
    }

    private static let hit = StaticString("; hit; ttl=")

    private func withHitLine(
        _ identifier: String,
        _ remainingSeconds: Int,
        _ read: (UnsafeRawBufferPointer) -> Void
    ) {
        var identifier = identifier
        let room =
            FieldSection.lineBytes(around: "Cache-Status") + identifier.utf8.count
            + Self.hit.utf8CodeUnitCount + DecimalText.bytesMax
        withUnsafeTemporaryAllocation(byteCount: room, alignment: 1) { target in
            let end = FieldSection.writeLine(trusted: "Cache-Status", to: target, at: 0) { value in
                var count = identifier.withUTF8 { bytes in
                    value.copy(UnsafeRawBufferPointer(bytes), at: 0)
                    return bytes.count
                }
                Self.hit.withUTF8Buffer { value.copy(UnsafeRawBufferPointer($0), at: count) }
                count += Self.hit.utf8CodeUnitCount
                let digits = UnsafeMutableRawBufferPointer(rebasing: value[count...])
                return count + DecimalText.write(remainingSeconds, into: digits)
            }
            read(UnsafeRawBufferPointer(rebasing: target[..<end]))
        }
    }
}
