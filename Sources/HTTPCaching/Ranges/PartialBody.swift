/// Which parts of a representation are held (RFC 9111 §3.4), as a pure value.
///
/// Invariants:
/// 1. `parts` are sorted, not empty, and no two touch.
/// 2. None reaches past `bodySize`, once that is known.
/// 3. There are never more than `partsMax` of them.
package struct PartialBody: Hashable, Sendable {
    /// More islands than this cost more to keep than to fetch again.
    package static let partsMax = 64

    package private(set) var parts: [Range<Int>] = []
    package private(set) var bodySize: Int?

    package init(bodySize: Int? = nil) {
        precondition(bodySize ?? 0 >= 0)
        self.bodySize = bodySize
    }

    package enum Addition: Hashable, Sendable {
        case added
        /// Another size than before: the parts are of different representations.
        case contradicts
        case tooManyParts
    }

    /// Takes in a part that arrived; the value is unchanged unless it was added.
    package mutating func add(_ content: ContentRange) -> Addition {
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

    package var isComplete: Bool {
        guard let bodySize else { return false }
        return bodySize == 0 || parts == [0..<bodySize]
    }

    package var heldBytes: Int { parts.reduce(0) { $0 + $1.count } }

    package func contains(_ range: Range<Int>) -> Bool {
        range.isEmpty
            || parts.contains {
                $0.lowerBound <= range.lowerBound && $0.upperBound >= range.upperBound
            }
    }

    /// What must be fetched to hold `range`, in order.
    package func missing(in range: Range<Int>) -> [Range<Int>] {
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
        package func checkInvariants() {
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
    /// RFC 9111 §3.4: parts may be joined only if both name the same strong validator.
    package static func mayCombine(stored: FieldSection, new: FieldSection) -> Bool {
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
        return old.modified == new.modified
    }
}

extension PartialBody {
    /// The fields of a representation whose parts have all come together: no Content-Range, the
    /// length of the whole, the status 200 (RFC 9111 §3.4).
    package static func completeFields(_ stored: FieldSection, bodySize: Int) -> FieldSection {
        var fields = stored
        fields.remove(lowercased: "content-range")
        fields.set("Content-Length", String(bodySize))
        return fields
    }
}
