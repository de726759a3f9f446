import CacheEngine
import RESP

/// One purge of a fleet, with an identity of its own.
///
/// The identity tells a purge that was appended twice from two purges of one tag.
struct FleetPurge: Hashable, Sendable {
    /// 16 random bytes.
    struct ID: Hashable, Sendable {
        static let byteCount = 16

        let high: UInt64
        let low: UInt64

        static func random() -> ID {
            var random = SystemRandomNumberGenerator()
            return ID(high: random.next(), low: random.next())
        }

        init(high: UInt64, low: UInt64) {
            self.high = high
            self.low = low
        }

        init?(_ bytes: some Collection<UInt8>) {
            guard bytes.count == Self.byteCount else { return nil }
            high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
            low = bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) }
        }

        var bytes: [UInt8] {
            [high, low].flatMap { number in
                (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
            }
        }
    }

    let id: ID
    let purge: SharedPurge

    /// The memory that the purge takes, about.
    var sizeBytes: Int { Self.fixedBytes + value.count }

    /// The memory of a purge without the bytes of its key or tag.
    static let fixedBytes = 128
}

// MARK: - As fields of the stream

extension FleetPurge {
    /// The texts of the fields `k` (kind) and `s` (scope).
    private enum Word {
        static let hard = "h"
        static let soft = "s"
        static let key = "k"
        static let tag = "t"
        static let everything = "a"
    }

    /// The value of the field `k`.
    var kind: String { purge.isSoft ? Word.soft : Word.hard }

    /// The value of the field `s`.
    var scope: String {
        switch purge.scope {
        case .key: Word.key
        case .tag: Word.tag
        case .everything: Word.everything
        }
    }

    /// The value of the field `v`: the bytes of the key or of the tag.
    var value: [UInt8] {
        switch purge.scope {
        case .key(let bytes): bytes
        case .tag(let tag): Array(tag.utf8)
        case .everything: []
        }
    }

    /// Reads fields that `kind`, `scope` and `value` wrote; `nil` for any other.
    init?(id: ID, kind: String?, scope: String?, value: [UInt8]) {
        let isSoft: Bool
        switch kind {
        case Word.hard: isSoft = false
        case Word.soft: isSoft = true
        default: return nil
        }
        self.id = id
        switch scope {
        case Word.key where !value.isEmpty: purge = SharedPurge(.key(value), isSoft: isSoft)
        case Word.tag:
            guard let tag = String(validating: value, as: UTF8.self) else { return nil }
            purge = SharedPurge(.tag(tag), isSoft: isSoft)
        case Word.everything where value.isEmpty: purge = SharedPurge(.everything, isSoft: isSoft)
        default: return nil
        }
    }
}
