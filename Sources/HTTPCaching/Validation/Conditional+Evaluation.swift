/// Answering a client's own conditions from a stored response (RFC 9110 §13.2.2, RFC 9111 §4.3.2).
extension Conditional {
    package enum Role: UInt8, Hashable, Sendable {
        /// If-Match and If-Unmodified-Since are not for caches: such requests go to the origin.
        case cache
        /// This store is the origin of what it serves.
        case origin
    }

    package enum Evaluation: Hashable, Sendable {
        /// 304, with `notModifiedFields`.
        case notModified
        /// 412.
        case preconditionFailed
        /// The whole response, whatever Range says.
        case full
        /// The response, or the part of it that Range asks for.
        case rangeAllowed
        /// Only the origin can answer this.
        case forward
    }

    /// Goes through the preconditions in the order of RFC 9110 §13.2.2.
    package static func evaluateClientConditionals(
        request: FieldSection,
        requestFacts: RequestFacts,
        stored: FieldSection,
        storedFacts: StoredFacts,
        nowSeconds: Int64,
        role: Role = .cache
    ) -> Evaluation {
        let flags = requestFacts.flags
        let candidate = Candidate(
            fields: stored,
            facts: storedFacts,
            request: request,
            nowSeconds: nowSeconds
        )
        // RFC 9110 §13.2.1: what would not be a success is answered as it is.
        guard (200...299).contains(storedFacts.status) else { return .full }
        if !flags.isDisjoint(with: .writeConditions) {
            guard role == .origin else { return .forward }
            if !candidate.passesWriteConditions(flags) { return .preconditionFailed }
        }
        let isRead = requestFacts.method == .get || requestFacts.method == .head
        if flags.contains(.hasIfNoneMatch) {
            if candidate.matchesNone == false { return isRead ? .notModified : .preconditionFailed }
        } else if flags.contains(.hasIfModifiedSince), isRead, candidate.isUnmodifiedSince {
            return .notModified
        }
        guard flags.contains(.hasRange), requestFacts.method == .get else { return .full }
        guard flags.contains(.hasIfRange) else { return .rangeAllowed }
        return candidate.satisfiesIfRange ? .rangeAllowed : .full
    }

    /// The fields of a 304 made from a stored response (RFC 9110 §15.4.5): those a cache may have
    /// to update, none that describes the content.
    package static func notModifiedFields(stored: FieldSection) -> FieldSection {
        var fields = stored
        let hasTag = stored.contains(lowercased: "etag")
        fields.removeAll { name in
            switch name.count {
            case 12: return name.equals(lowercased: "content-type")
            case 13:
                return name.equals(lowercased: "content-range")
                    || (hasTag && name.equals(lowercased: "last-modified"))
            case 14: return name.equals(lowercased: "content-length")
            case 16:
                return name.equals(lowercased: "content-encoding")
                    || name.equals(lowercased: "content-language")
            default: return false
            }
        }
        return fields
    }
}

/// A stored response held against the conditions of one request.
private struct Candidate {
    let fields: FieldSection
    let facts: StoredFacts
    let request: FieldSection
    let nowSeconds: Int64

    /// RFC 9110 §13.1.2: false when a tag of If-None-Match is the stored one, or it is `*`.
    var matchesNone: Bool { !anyTag("if-none-match") { $0.weaklyEquals($1) } }

    /// RFC 9111 §4.3.2: by Last-Modified, else by Date.
    ///
    /// A condition that is no date is ignored.
    var isUnmodifiedSince: Bool {
        guard let since = date("if-modified-since") else { return false }
        return facts.lastModifiedSeconds ?? facts.dateSeconds <= since
    }

    /// RFC 9110 §13.1.5: a strong tag, or exactly the date of a strong Last-Modified.
    var satisfiesIfRange: Bool {
        request.withFirst(lowercased: "if-range") { text -> Bool in
            if let since = HTTPDate.parse(text, nearSeconds: nowSeconds) {
                guard let modified = facts.lastModifiedSeconds else { return false }
                return modified == since && modified < facts.dateSeconds
            }
            guard let wanted = EntityTag(text) else { return false }
            return withTag { $0.stronglyEquals(wanted) }
        } ?? false
    }

    /// RFC 9110 §13.1.1 and §13.1.4.
    func passesWriteConditions(_ flags: RequestFacts.Flags) -> Bool {
        if flags.contains(.hasIfMatch) { return anyTag("if-match") { $0.stronglyEquals($1) } }
        guard let since = date("if-unmodified-since") else { return true }
        guard let modified = facts.lastModifiedSeconds else { return false }
        return modified <= since
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

    private func withTag(_ body: (EntityTag) -> Bool) -> Bool {
        fields.withFirst(lowercased: "etag") { text -> Bool in
            guard let tag = EntityTag(text) else { return false }
            return body(tag)
        } ?? false
    }

    private func anyTag(
        _ name: StaticString,
        _ equals: (EntityTag, EntityTag) -> Bool
    ) -> Bool {
        var isFound = false
        request.forEachValue(of: name) { line in
            if line.trimmed.equals(exactly: "*") { isFound = true }
            var tags = EntityTagScanner(line)
            while !isFound, let tag = tags.next() {
                isFound = withTag { equals($0, tag) }
            }
        }
        return isFound
    }
}
