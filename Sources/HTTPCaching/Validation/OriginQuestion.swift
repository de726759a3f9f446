/// The request to the origin when a stored response is selected (RFC 9111 §4.3.1).
public enum OriginQuestion: Hashable, Sendable {
    /// The unchanged request.
    ///
    /// The origin evaluates its conditions and ranges, and the client gets the response.
    case asItCame
    /// Validation of the stored response.
    ///
    /// The client's own conditions and ranges are left out; the cache evaluates them afterwards.
    case confirm
    /// The single gap between the stored parts of a range.
    case complete(range: Range<Int>, gap: Range<Int>)
}

extension OriginQuestion {
    /// Decides for a request; `parts` are those of a stored partial response.
    public static func decide(
        request: FieldSection,
        requestFacts: RequestFacts,
        stored: FieldSection,
        storedFacts: StoredFacts,
        parts: PartialBody?,
        nowSeconds: Int64
    ) -> OriginQuestion {
        // RFC 9110 §13.1.2: with another method, If-None-Match asks for a 412, and a second request
        // after a 304 that confirms nothing would do the work twice.
        guard [.get, .head, .query].contains(requestFacts.method) || Mutant.validatesByPost.isOn
        else { return .asItCame }
        // RFC 9110 §13.1.1, §13.1.4: both conditions concern the origin's current state. The
        // response to the cache's own condition does not tell whether they hold.
        guard requestFacts.flags.isDisjoint(with: .writeConditions) else { return .asItCame }
        guard storedFacts.flags.contains(.isPartial) else { return .confirm }
        guard let parts, let size = parts.bodySize, requestFacts.hasRange,
            requestFacts.flags.isDisjoint(with: .readConditions),
            Conditional.rangeValidator(stored, storedFacts) != nil,
            case .rangeAllowed = Conditional.evaluateClientConditionals(
                request: request,
                requestFacts: requestFacts,
                stored: stored,
                storedFacts: storedFacts,
                nowSeconds: nowSeconds
            ),
            case .single(let range) = RangeSet(request)?.resolve(bodySize: size)
        else { return .asItCame }
        let gaps = parts.missing(in: range)
        guard gaps.count == 1, gaps[0] != range else { return .asItCame }
        return .complete(range: range, gap: gaps[0])
    }
}
