import HTTPCaching

extension HTTPCache {
    /// The answer that a plain hit on `entry` is.
    @inline(__always)
    func serve(_ hit: PlainHit, of entry: Entry) -> CacheResponse {
        let remaining = hit.fresh.lifetimeSeconds - hit.fresh.ageSeconds
        var info = CacheInfo(source: .fresh, tier: .memory)
        info.ageSeconds = hit.fresh.ageSeconds
        info.remainingSeconds = remaining
        info.storedAtSeconds = hit.createdSeconds
        info.isStored = true
        let fields = ServedFields(
            ByteChunk(entry.storage, hit.fields),
            ageSeconds: hit.fresh.ageSeconds,
            configuration.cacheStatus == .added
                ? .hit(identifier: statusIdentifier, remainingSeconds: remaining) : .omitted
        )
        return CacheResponse(
            status: Int(hit.fresh.status),
            fields: HeaderFields(fields),
            body: BodyStream(ByteChunk(entry.storage, hit.body)),
            info: info
        )
    }

    /// Answers `request` from a stored response: whole, a part of it, or 304.
    ///
    /// `info` says how it came to be used, and its age.
    /// Nil when only the origin can answer it: a condition that is not for caches, or a part that
    /// is not stored.
    func serve(
        _ stored: StoredResponse,
        to request: CacheRequest,
        _ facts: RequestFacts,
        as info: CacheInfo
    ) -> CacheResponse? {
        let isPlain = !facts.isConditional && !facts.hasRange
        if isPlain, !stored.facts.flags.contains(.isPartial) {
            return response(
                stored,
                status: Int(stored.facts.status),
                info,
                body(of: stored, for: request)
            )
        }
        return serveSpecially(stored, request, facts, info)
    }

    private func serveSpecially(
        _ stored: StoredResponse,
        _ request: CacheRequest,
        _ facts: RequestFacts,
        _ info: CacheInfo
    ) -> CacheResponse? {
        if stored.facts.flags.contains(.isPartial) {
            return servePart(of: stored, request, facts, info)
        }
        let evaluation = Conditional.evaluateClientConditionals(
            request: request.fields.section,
            requestFacts: facts,
            stored: stored.fields(),
            storedFacts: stored.facts,
            nowSeconds: clock.nowSeconds
        )
        let status = Int(stored.facts.status)
        switch evaluation {
        case .forward: return nil
        case .notModified: return notModified(stored, info)
        case .preconditionFailed: return response(stored, status: 412, info)
        case .full:
            return response(stored, status: status, info, body(of: stored, for: request))
        case .rangeAllowed:
            guard status == 200, let ranges = RangeSet(request.fields.section) else {
                return response(stored, status: status, info, stored.body)
            }
            return serve(ranges.resolve(bodySize: stored.bodyCount), of: stored, info)
        }
    }

    private func notModified(_ stored: StoredResponse, _ info: CacheInfo) -> CacheResponse {
        var response = response(stored, status: 304, info)
        let section = response.fields.section
        response.fields = HeaderFields(Conditional.notModifiedFields(stored: section))
        return response
    }

    // MARK: Parts

    private func serve(
        _ resolution: RangeSet.Resolution,
        of stored: StoredResponse,
        _ info: CacheInfo
    ) -> CacheResponse {
        let size = stored.bodyCount
        switch resolution {
        case .whole: return response(stored, status: 200, info, stored.body)
        case .unsatisfiable:
            var answer = response(stored, status: 416, info)
            answer.fields["Content-Range"] = ContentRange(unsatisfiedBodySize: size).text
            answer.fields["Content-Length"] = "0"
            return answer
        case .single(let range):
            return partial(stored, range, size: size, info) { stored.body(range) }
        case .multi(let ranges):
            let layout = MultipartByteranges(
                boundary: boundary(),
                partType: stored.fields().first("Content-Type"),
                bodySize: size,
                ranges: ranges
            )
            return multipart(stored, layout, info) { stored.body($0) }
        }
    }

    /// A stored partial response can answer for the parts it holds.
    private func servePart(
        of stored: StoredResponse,
        _ request: CacheRequest,
        _ facts: RequestFacts,
        _ info: CacheInfo
    ) -> CacheResponse? {
        guard request.method == .get, facts.hasRange, let parts = stored.parts,
            let size = parts.bodySize, let ranges = RangeSet(request.fields.section)
        else { return nil }
        let evaluation = Conditional.evaluateClientConditionals(
            request: request.fields.section,
            requestFacts: facts,
            stored: stored.fields(),
            storedFacts: stored.facts,
            nowSeconds: clock.nowSeconds
        )
        switch evaluation {
        case .notModified: return notModified(stored, info)
        case .rangeAllowed: break
        case .full, .forward, .preconditionFailed: return nil
        }
        switch ranges.resolve(bodySize: size) {
        case .single(let range) where parts.contains(range):
            return partial(stored, range, size: size, info) {
                stored.body(parts.storedRange(of: range))
            }
        case .multi(let ranges) where ranges.allSatisfy(parts.contains):
            let layout = MultipartByteranges(
                boundary: boundary(),
                partType: stored.fields().first("Content-Type"),
                bodySize: size,
                ranges: ranges
            )
            return multipart(stored, layout, info) { stored.body(parts.storedRange(of: $0)) }
        case .single, .multi, .whole, .unsatisfiable: return nil
        }
    }

    private func partial(
        _ stored: StoredResponse,
        _ range: Range<Int>,
        size: Int,
        _ info: CacheInfo,
        _ body: () -> BodyStream
    ) -> CacheResponse {
        var answer = response(stored, status: 206, info)
        answer.fields["Content-Range"] = ContentRange(range: range, bodySize: size).text
        answer.fields["Content-Length"] = String(range.count)
        answer.body = body()
        return answer
    }

    private func multipart(
        _ stored: StoredResponse,
        _ layout: MultipartByteranges,
        _ info: CacheInfo,
        _ body: (Range<Int>) -> BodyStream
    ) -> CacheResponse {
        var pieces: [BodyStream] = []
        for (index, range) in layout.ranges.enumerated() {
            pieces.append(BodyStream(ByteChunk(layout.head(ofPart: index))))
            pieces.append(body(range))
        }
        pieces.append(BodyStream(ByteChunk(layout.tail)))
        var answer = response(stored, status: 206, info)
        answer.fields["Content-Type"] = layout.contentType
        answer.fields["Content-Length"] = String(layout.contentLength)
        answer.fields["Content-Range"] = nil
        answer.body = BodyStream(parts: pieces)
        return answer
    }

    /// Letters nobody can foresee, so no body can hold them on purpose.
    private func boundary() -> String {
        var random = SystemRandomNumberGenerator()
        return String(random.next(), radix: 36) + String(random.next(), radix: 36)
    }

    // MARK: The head

    private func body(of stored: StoredResponse, for request: CacheRequest) -> BodyStream {
        request.method.kind == .head ? .empty : stored.body
    }

    private func response(
        _ stored: StoredResponse,
        status: Int,
        _ info: CacheInfo,
        _ body: BodyStream = .empty
    ) -> CacheResponse {
        let age = info.ageSeconds ?? 0
        let remaining = Int(stored.facts.freshnessLifetimeSeconds) - age
        var info = info
        info.remainingSeconds = remaining
        info.storedAtSeconds = stored.stored.createdSeconds
        info.isStored = true
        if let userInfo = stored.userInfo { info.userInfo = userInfo }
        let fields = ServedFields(
            stored.encodedFields,
            ageSeconds: age,
            cacheStatus(of: info, remainingSeconds: remaining)
        )
        return CacheResponse(
            status: status,
            fields: HeaderFields(fields),
            body: body,
            info: info
        )
    }

    private func cacheStatus(of info: CacheInfo, remainingSeconds: Int) -> ServedFields.Status {
        guard configuration.cacheStatus == .added else { return .omitted }
        if case .revalidated = info.source {
            var status = CacheStatus(identifier: configuration.name, outcome: .forwarded(.stale))
            status.forwardStatus = info.originStatus
            status.isStored = true
            status.ttlSeconds = remainingSeconds
            return .other(status)
        }
        return .hit(identifier: statusIdentifier, remainingSeconds: remainingSeconds)
    }
}

extension PartialBody {
    /// Where the bytes of `range`, which is held, stand among the stored parts.
    func storedRange(of range: Range<Int>) -> Range<Int> {
        var offset = 0
        for part in parts {
            if part.lowerBound <= range.lowerBound && range.upperBound <= part.upperBound {
                let start = offset + range.lowerBound - part.lowerBound
                return start..<start + range.count
            }
            offset += part.count
        }
        preconditionFailure("Only a range that is held has a place")
    }
}
