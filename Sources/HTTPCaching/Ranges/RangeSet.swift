/// The ranges of a Range field (RFC 9110 §14.2).
public struct RangeSet: Hashable, Sendable {
    public enum Spec: Hashable, Sendable {
        /// The first and the last position, both inclusive; without a last position, up to the end.
        case from(Int, through: Int?)
        /// The last bytes of the body, in this number.
        case suffix(Int)
    }

    /// The most ranges of one request, since each costs a part; with more, the field is ignored.
    public static let rangesMax = 16
    /// From this many overlaps on, the whole body is sent (RFC 9110 §14.2: more than two ranges).
    public static let overlapsMax = 2

    public let specs: [Spec]

    public enum Resolution: Hashable, Sendable {
        /// The whole body, as if the request had no Range.
        case whole
        /// The response is a 416.
        case unsatisfiable
        case single(Range<Int>)
        case multi([Range<Int>])
    }

    /// Returns `nil` if the field must be ignored.
    ///
    /// This is so if the unit is not `bytes`, a range is invalid, or there are more than
    /// `rangesMax`.
    public init?(_ field: ByteRun) {
        let text = field.trimmed
        guard let equals = text.index(of: .equalsSign),
            text[0..<equals].equals(lowercased: "bytes")
        else { return nil }
        var members = ListScanner(text[(equals + 1)..<text.count])
        var specs: [Spec] = []
        while let member = members.next() {
            guard specs.count < Self.rangesMax, let spec = Self.spec(member) else { return nil }
            specs.append(spec)
        }
        guard !specs.isEmpty else { return nil }
        self.specs = specs
    }

    public init?(_ text: String) {
        guard let parsed = text.withByteRun({ RangeSet($0) }) else { return nil }
        self = parsed
    }

    /// Reads the Range line of a request; several lines are ignored.
    public init?(_ request: FieldSection) {
        var parsed: RangeSet?
        var lines = 0
        request.forEachValue(of: "range") { value in
            lines += 1
            parsed = RangeSet(value)
        }
        guard lines == 1, let parsed else { return nil }
        self = parsed
    }

    /// The ranges to send of a body of `bodySize` bytes.
    public func resolve(bodySize: Int) -> Resolution {
        precondition(bodySize >= 0)
        // The usual request, without an array.
        if specs.count == 1 {
            guard let range = Self.resolve(specs[0], bodySize: bodySize) else {
                return .unsatisfiable
            }
            // An empty body has no part that a Content-Range could express.
            return range.isEmpty ? .whole : .single(range)
        }
        return resolveAll(bodySize: bodySize)
    }

    /// The same for any number of ranges.
    func resolveAll(bodySize: Int) -> Resolution {
        var ranges: [Range<Int>] = []
        var wantsEmptySuffix = false
        for spec in specs {
            switch Self.resolve(spec, bodySize: bodySize) {
            case .some(let range) where range.isEmpty: wantsEmptySuffix = true
            case .some(let range): ranges.append(range)
            case .none: break
            }
        }
        if ranges.isEmpty { return wantsEmptySuffix ? .whole : .unsatisfiable }
        guard let disjoint = Self.coalesced(ranges) else { return .whole }
        return disjoint.count == 1 ? .single(disjoint[0]) : .multi(disjoint)
    }

    /// The ranges in their order if no two touch, otherwise sorted and merged.
    ///
    /// Returns `nil` if there are `overlapsMax` overlaps or more.
    private static func coalesced(_ ranges: [Range<Int>]) -> [Range<Int>]? {
        let sorted = ranges.sorted {
            ($0.lowerBound, $0.upperBound) < ($1.lowerBound, $1.upperBound)
        }
        var joined: [Range<Int>] = []
        var overlaps = 0
        for range in sorted {
            guard let last = joined.last, range.lowerBound <= last.upperBound else {
                joined.append(range)
                continue
            }
            if range.lowerBound < last.upperBound, !Mutant.forgetsOverlaps.isOn { overlaps += 1 }
            joined[joined.count - 1] =
                last.lowerBound..<max(last.upperBound, range.upperBound)
        }
        guard overlaps < overlapsMax else { return nil }
        return joined.count == ranges.count ? ranges : joined
    }

    private static func resolve(_ spec: Spec, bodySize: Int) -> Range<Int>? {
        switch spec {
        case .from(let first, let last):
            guard first < bodySize else { return nil }
            return first..<(min(last ?? .max, bodySize - 1) + 1)
        case .suffix(let length):
            return length > 0 ? max(0, bodySize - length)..<bodySize : nil
        }
    }

    private static func spec(_ text: ByteRun) -> Spec? {
        guard let hyphen = text.index(of: .hyphen) else { return nil }
        let firstText = text[0..<hyphen]
        let lastText = text[(hyphen + 1)..<text.count]
        if firstText.isEmpty { return position(lastText).map { .suffix($0) } }
        guard let first = position(firstText) else { return nil }
        if lastText.isEmpty { return .from(first, through: nil) }
        guard let last = position(lastText), first <= last else { return nil }
        return .from(first, through: last)
    }

    /// A number that does not fit counts as past the end of any body.
    private static func position(_ text: ByteRun) -> Int? {
        DecimalNumber.parse(text, clampedTo: .max)
    }
}
