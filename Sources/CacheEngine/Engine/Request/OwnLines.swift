import HTTPCaching

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
        indirect case other(CacheStatus)
    }

    init(ageSeconds: Int?, _ status: Status) {
        self.ageSeconds = OptionalNumber(ageSeconds)
        self.status = status
    }

    /// Calls `read` with the encoded lines, run by run.
    func forEachRun(_ read: (UnsafeRawBufferPointer) -> Void) {
        withAgeLine(read)
        switch status {
        case .omitted: break
        case .hit(let name, let remaining): withHitLine(name, remaining, read)
        case .other(let status): withLine(status.bytes, read)
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

    private func withLine(_ status: [UInt8], _ read: (UnsafeRawBufferPointer) -> Void) {
        let room = FieldSection.lineBytes(around: "Cache-Status") + status.count
        withUnsafeTemporaryAllocation(byteCount: room, alignment: 1) { target in
            let end = FieldSection.writeLine(trusted: "Cache-Status", to: target, at: 0) { value in
                value.copyBytes(from: status)
                return status.count
            }
            read(UnsafeRawBufferPointer(rebasing: target[..<end]))
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
