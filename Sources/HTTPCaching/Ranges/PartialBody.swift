/// The parts of a representation that are stored (RFC 9111 §3.4), as a pure value.
///
/// Invariants:
/// 1. `parts` are sorted and not empty, and no two of them touch.
/// 2. No part exceeds `bodySize`, once the size is known.
/// 3. There are at most `partsMax` parts.
public struct PartialBody: Hashable, Sendable {
    /// The most separate parts; more of them cost more to keep than to fetch again.
    public static let partsMax = 64

    public private(set) var parts: [Range<Int>] = []
    public private(set) var bodySize: Int?

    public init(bodySize: Int? = nil) {
        precondition(bodySize ?? 0 >= 0)
        self.bodySize = bodySize
    }

    public enum Addition: Hashable, Sendable {
        case added
        /// The size differs from the known one: the parts belong to different representations.
        case contradicts
        case tooManyParts
    }

    /// Adds a part that arrived; the value changes only if the result is `added`.
    public mutating func add(_ content: ContentRange) -> Addition {
        guard let range = content.range else { return .contradicts }
        if let known = bodySize, let size = content.bodySize, known != size { return .contradicts }
        let size = bodySize ?? content.bodySize
        let upperBound = max(range.upperBound, parts.last?.upperBound ?? 0)
        guard upperBound <= size ?? .max else { return .contradicts }
        let merged = Self.merging(range, into: parts)
        guard merged.count <= Self.partsMax else { return .tooManyParts }
        parts = merged
        bodySize = size
        return .added
    }

    private static func merging(_ range: Range<Int>, into parts: [Range<Int>]) -> [Range<Int>] {
        guard !range.isEmpty else { return parts }
        var lower = range.lowerBound
        var upper = range.upperBound
        var before: [Range<Int>] = []
        var after: [Range<Int>] = []
        for part in parts {
            if part.upperBound < lower {
                before.append(part)
            } else if part.lowerBound > upper {
                after.append(part)
            } else {
                lower = min(lower, part.lowerBound)
                upper = max(upper, part.upperBound)
            }
        }
        return before + [lower..<upper] + after
    }

    public var isComplete: Bool {
        guard let bodySize else { return false }
        return bodySize == 0 || parts == [0..<bodySize]
    }

    public var heldBytes: Int { parts.reduce(0) { $0 + $1.count } }

    public func contains(_ range: Range<Int>) -> Bool {
        range.isEmpty
            || parts.contains {
                $0.lowerBound <= range.lowerBound && $0.upperBound >= range.upperBound
            }
    }

    /// The ranges that must be fetched to complete `range`, in order.
    public func missing(in range: Range<Int>) -> [Range<Int>] {
        var gaps: [Range<Int>] = []
        var next = range.lowerBound
        for part in parts where part.upperBound > next && part.lowerBound < range.upperBound {
            if part.lowerBound > next { gaps.append(next..<part.lowerBound) }
            next = max(next, part.upperBound)
        }
        if next < range.upperBound { gaps.append(next..<range.upperBound) }
        return gaps
    }

    #if ENGINE_CHECKS
        public func checkInvariants() {
            precondition(parts.count <= Self.partsMax)
            var end = -1
            for part in parts {
                precondition(!part.isEmpty && part.lowerBound > end)
                end = part.upperBound
            }
            precondition(end <= bodySize ?? .max)
        }
    #endif
}

extension PartialBody {
    /// Whether two parts may be combined: both have the same strong validator (RFC 9111 §3.4).
    public static func mayCombine(stored: FieldSection, new: FieldSection) -> Bool {
        stored.withFirst(lowercased: "etag") { storedText -> Bool in
            new.withFirst(lowercased: "etag") { newText -> Bool in
                guard let old = EntityTag(storedText), let new = EntityTag(newText) else {
                    return false
                }
                return old.stronglyEquals(new)
            } ?? false
        } ?? Self.haveSameStrongDate(stored, new)
    }

    private static func haveSameStrongDate(_ stored: FieldSection, _ new: FieldSection) -> Bool {
        guard !new.contains(lowercased: "etag") else { return false }
        func dates(_ fields: FieldSection) -> (modified: Int64, date: Int64)? {
            let facts = ResponseFacts(
                status: 206,
                fields: fields,
                targets: [],
                receivedAtSeconds: 0
            )
            guard let modified = facts.lastModifiedSeconds, let date = facts.dateSeconds,
                modified < date
            else { return nil }
            return (modified, date)
        }
        guard let old = dates(stored), let new = dates(new) else { return false }
        return old.modified == new.modified || Mutant.combinesByDateAlone.isOn
    }
}

extension PartialBody {
    /// The fields of combined parts: new fields replace stored ones (RFC 9110 §15.3.7.3).
    ///
    /// Content-Digest is left out, as it is that of one part (RFC 9530 §2).
    public static func joinedFields(stored: FieldSection, new: FieldSection) -> FieldSection {
        var joined = stored
        joined.removeAll { new.contains($0) }
        new.forEachLine { joined.append(name: $0.name, value: $0.value) }
        if !Mutant.keepsDigestsOfParts.isOn { joined.remove(lowercased: "content-digest") }
        return joined
    }
}
