import HTTPCaching

/// A range whose stored parts leave one gap, which is fetched.
struct RestOfRange: Sendable {
    let stored: StoredResponse
    private let parts: PartialBody
    private let range: Range<Int>
    let gap: Range<Int>

    init?(_ stored: StoredResponse, range: Range<Int>, gap: Range<Int>) {
        guard let parts = stored.parts else { return nil }
        assert(
            range.lowerBound <= gap.lowerBound && gap.upperBound <= range.upperBound
                && parts.missing(in: range) == [gap],
            "all but the gap is stored"
        )
        self.stored = stored
        self.parts = parts
        self.range = range
        self.gap = gap
    }

    /// Whether the response is exactly the gap, and of the stored version.
    func isBrought(by answer: OriginAnswer) -> Bool {
        guard answer.status == 206, answer.expectedCount == gap.count,
            let text = answer.fields.first("Content-Range"), let content = ContentRange(text)
        else { return false }
        return content.range == gap
            && (content.bodySize == nil || content.bodySize == parts.bodySize)
            && isOfStoredVersion(answer)
    }

    func isOfStoredVersion(_ answer: OriginAnswer) -> Bool {
        PartialBody.mayCombine(stored: stored.fields(), new: answer.fields)
    }

    /// The fields of the response to the whole range, given the fields of the gap.
    func fields(with new: FieldSection) -> FieldSection {
        var fields = PartialBody.joinedFields(stored: stored.fields(), new: new)
        fields.set("Content-Range", ContentRange(range: range, bodySize: parts.bodySize).text)
        fields.set("Content-Length", String(range.count))
        return fields
    }

    /// The bytes of the whole range, given those of the gap.
    func body(_ filling: BodyStream) -> BodyStream {
        BodyStream(
            parts: stored(range.lowerBound..<gap.lowerBound) + [filling]
                + stored(gap.upperBound..<range.upperBound)
        )
    }

    private func stored(_ range: Range<Int>) -> [BodyStream] {
        range.isEmpty ? [] : [stored.body(parts.storedRange(of: range))]
    }
}
