/// Evaluation of a client's conditions on a stored response (RFC 9110 §13.2.2, RFC 9111 §4.3.2).
extension Conditional {
    public enum Evaluation: Hashable, Sendable {
        /// The response is a 304 with `notModifiedFields`.
        case notModified
        /// The response is a 412.
        case preconditionFailed
        /// The whole response; Range is ignored.
        case full
        /// The response, or the part of it that Range names.
        case rangeAllowed
        /// Only the origin can answer the request.
        case forward
    }

    /// Evaluates the preconditions in the order of RFC 9110 §13.2.2.
    public static func evaluateClientConditionals(
        request: FieldSection,
        requestFacts: RequestFacts,
        stored: FieldSection,
        storedFacts: StoredFacts,
        nowSeconds: Int64
    ) -> Evaluation {
        stored.withUnsafeBytes { encoded in
            evaluateClientConditionals(
                request: request,
                requestFacts: requestFacts,
                stored: encoded,
                storedFacts: storedFacts,
                nowSeconds: nowSeconds
            )
        }
    }

    /// The same for stored fields that are lent as `FieldSection` encodes them.
    public static func evaluateClientConditionals(
        request: FieldSection,
        requestFacts: RequestFacts,
        stored: UnsafeRawBufferPointer,
        storedFacts: StoredFacts,
        nowSeconds: Int64
    ) -> Evaluation {
        let flags = requestFacts.flags
        let candidate = Candidate(
            fields: stored,
            facts: storedFacts,
            request: request,
            nowSeconds: nowSeconds
        )
        // RFC 9110 §13.2.1: conditions are ignored if the response is not a success.
        guard (200...299).contains(storedFacts.status) else { return .full }
        // The origin evaluates If-Match and If-Unmodified-Since (RFC 9111 §4.3.2).
        guard flags.isDisjoint(with: .writeConditions) else { return .forward }
        let isRead = requestFacts.method == .get || requestFacts.method == .head
        if flags.contains(.hasIfNoneMatch) {
            if ifNoneMatch(of: request, names: stored) {
                return isRead ? .notModified : .preconditionFailed
            }
        } else if flags.contains(.hasIfModifiedSince), isRead, candidate.isUnmodifiedSince {
            return .notModified
        }
        guard flags.contains(.hasRange), requestFacts.method == .get else { return .full }
        if Mutant.ignoresIfRange.isOn { return .rangeAllowed }
        guard flags.contains(.hasIfRange) else { return .rangeAllowed }
        return candidate.satisfiesIfRange ? .rangeAllowed : .full
    }

    /// Whether If-None-Match of a request has `*`, or the tag of the response with the fields
    /// `stored` (RFC 9110 §13.1.2).
    public static func ifNoneMatch(
        of request: FieldSection,
        names stored: UnsafeRawBufferPointer
    ) -> Bool {
        let text = FieldCursor.withFirst(lowercased: "etag", in: stored) { $0 }
        let tag = text.flatMap { EntityTag($0) }
        var isNamed = false
        request.forEachValue(of: "if-none-match") { line in
            if line.equals(exactly: "*") { isNamed = true }
            guard !isNamed, let text, let tag else { return }
            // The usual request repeats the tag as the response spelled it.
            isNamed = line.equals(text)
            var tags = EntityTagScanner(line)
            while !isNamed, let next = tags.next() { isNamed = tag.weaklyEquals(next) }
        }
        return isNamed
    }

    /// The fields of a 304 made from a stored response (RFC 9110 §15.4.5).
    ///
    /// Fields that describe the content are removed; fields that a cache may have to update are
    /// kept.
    public static func notModifiedFields(stored: FieldSection) -> FieldSection {
        var fields = stored
        let hasTag = stored.contains(lowercased: "etag")
        fields.removeAll { isLeftOut($0, hasTag: hasTag) }
        return fields
    }

    /// Calls `read` with the lines of a 304 made from a stored response, run by run, in place.
    public static func forEachNotModifiedRun(
        ofStored lines: UnsafeRawBufferPointer,
        _ read: (UnsafeRawBufferPointer) -> Void
    ) {
        let hasTag = FieldCursor.withFirst(lowercased: "etag", in: lines) { _ in } != nil
        var cursor = FieldCursor(lines)
        var start = 0
        func endRun(at end: Int) {
            if end > start { read(UnsafeRawBufferPointer(rebasing: lines[start..<end])) }
        }
        while let line = cursor.next() {
            guard isLeftOut(line.name, hasTag: hasTag) else { continue }
            endRun(at: line.extent.lowerBound)
            start = line.extent.upperBound
        }
        endRun(at: cursor.offset)
    }

    /// Whether a 304 leaves out the field; `hasTag` tells whether the response has an entity tag.
    private static func isLeftOut(_ name: ByteRun, hasTag: Bool) -> Bool {
        switch name.count {
        case 12: name.equals(lowercased: "content-type")
        case 13:
            name.equals(lowercased: "content-range")
                || (hasTag && name.equals(lowercased: "last-modified"))
        case 14:
            name.equals(lowercased: "content-length") || name.equals(lowercased: "content-digest")
        case 16:
            name.equals(lowercased: "content-encoding")
                || name.equals(lowercased: "content-language")
        default: false
        }
    }
}

/// A stored response and the conditions of one request.
private struct Candidate {
    /// The stored fields as `FieldSection` encodes them.
    let fields: UnsafeRawBufferPointer
    let facts: StoredFacts
    let request: FieldSection
    let nowSeconds: Int64

    /// Whether the response is unmodified since the date, by Last-Modified or else by Date.
    ///
    /// An invalid date is ignored (RFC 9111 §4.3.2).
    var isUnmodifiedSince: Bool {
        guard let since = date("if-modified-since") else { return false }
        return facts.lastModifiedSeconds ?? facts.dateSeconds <= since
    }

    /// Whether If-Range has the strong tag, or the exact date of a strong Last-Modified (§13.1.5).
    var satisfiesIfRange: Bool {
        request.withFirst(lowercased: "if-range") { text -> Bool in
            if let since = HTTPDate.parse(text, nearSeconds: nowSeconds) {
                // The Date may be this cache's own, which makes no date strong.
                guard let modified = facts.lastModifiedSeconds,
                    facts.flags.contains(.hasStrongDate)
                else { return false }
                return modified == since && modified < facts.dateSeconds
            }
            guard let wanted = EntityTag(text) else { return false }
            return FieldCursor.withFirst(lowercased: "etag", in: fields) { stored in
                EntityTag(stored)?.stronglyEquals(wanted) ?? false
            } ?? false
        } ?? false
    }

    private func date(_ name: StaticString) -> Int64? {
        var lines = 0
        var date: Int64?
        request.forEachValue(of: name) { text in
            lines += 1
            date = HTTPDate.parse(text, nearSeconds: nowSeconds)
        }
        return lines == 1 ? date : nil
    }
}
