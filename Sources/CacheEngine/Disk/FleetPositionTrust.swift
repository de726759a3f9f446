import Synchronization

/// Whether the position in a fleet's log, kept beside the entries, may be trusted at an opening.
///
/// The position says that every removal before it is on the disk. Without `.onRemoval` only the
/// page cache may have those removals, while the position has reached the device. Therefore the
/// position has the identity of the boot in which it was written in front of it. In another boot it
/// is not trusted, and the fleet lets the origin confirm each entry.
///
///     <boot, or `synced`, or `-`> \n <position>
final class FleetPositionTrust: Sendable {
    private static let synced = "synced"
    private static let unknown = "-"

    private let isSynced: Bool
    private let bootID: String?
    /// Whether removals of this boot were written without being synchronised.
    private let hasUnsynchronized = Atomic(false)

    init(_ configuration: DiskConfiguration) {
        isSynced = configuration.durability == .onRemoval
        bootID = configuration.bootID
    }

    /// The bytes behind the mark; `nil` if they must not be trusted.
    func trusted(_ note: [UInt8]) -> [UInt8]? {
        guard let end = note.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let rest = Array(note[(end + 1)...])
        switch String(decoding: note[..<end], as: UTF8.self) {
        case Self.synced: return rest
        case bootID:
            // The removals before it stay unsynchronised, whatever the durability is now.
            hasUnsynchronized.store(true, ordering: .relaxed)
            return rest
        default: return Mutant.trustsAnyBoot.isOn ? rest : nil
        }
    }

    /// The note with its mark.
    func marked(_ note: [UInt8]) -> [UInt8] {
        let mark =
            isSynced && !hasUnsynchronized.load(ordering: .relaxed)
            ? Self.synced : bootID ?? Self.unknown
        return Array("\(mark)\n".utf8) + note
    }
}
