import HTTPCaching

extension HTTPCache {
    /// What a stored response is served as.
    struct Serving {
        var source: CacheInfo.Source
        var tier: CacheInfo.Tier?
        var ageSeconds: Int
        var originStatus: Int?
        var originFields: HeaderFields?
        var error: (any Error)?
    }

    /// Answers `request` from a stored response: whole, a part of it, or 304.
    ///
    /// Nil when only the origin can answer it: a condition that is not for caches, or a part that
    /// is not stored.
    func serve(
        _ stored: StoredResponse,
        to request: CacheRequest,
        _ facts: RequestFacts,
        as serving: Serving
    ) -> CacheResponse? {
        let isPlain = !facts.isConditional && !facts.hasRange
        if isPlain, !stored.facts.flags.contains(.isPartial) {
            return response(stored, status: Int(stored.facts.status), serving) { body in
                body = request.method == .head ? .empty : stored.body
            }
        }
        return serveSpecially(stored, request, facts, serving)
    }

    private func serveSpecially(
        _ stored: StoredResponse,
        _ request: CacheRequest,
        _ facts: RequestFacts,
        _ serving: Serving
    ) -> CacheResponse? {
        if stored.facts.flags.contains(.isPartial) {
            return servePart(of: stored, request, facts, serving)
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
        case .notModified: return notModified(stored, serving)
        case .preconditionFailed: return response(stored, status: 412, serving)
        case .full:
            return response(stored, status: status, serving) { body in
                body = request.method == .head ? .empty : stored.body
            }
        case .rangeAllowed:
            guard status == 200, let ranges = RangeSet(request.fields.section) else {
                return response(stored, status: status, serving) { $0 = stored.body }
            }
            return serve(ranges.resolve(bodySize: stored.bodyCount), of: stored, serving)
        }
    }

    private func notModified(_ stored: StoredResponse, _ serving: Serving) -> CacheResponse {
        var response = response(stored, status: 304, serving)
        let section = response.fields.section
        response.fields = HeaderFields(Conditional.notModifiedFields(stored: section))
        return response
    }

    // MARK: Parts

    private func serve(
        _ resolution: RangeSet.Resolution,
        of stored: StoredResponse,
        _ serving: Serving
    ) -> CacheResponse {
        let size = stored.bodyCount
        switch resolution {
        case .whole: return response(stored, status: 200, serving) { $0 = stored.body }
        case .unsatisfiable:
            var answer = response(stored, status: 416, serving)
            answer.fields["Content-Range"] = ContentRange(unsatisfiedBodySize: size).text
            answer.fields["Content-Length"] = "0"
            return answer
        case .single(let range):
            return partial(stored, range, size: size, serving) { stored.body(range) }
        case .multi(let ranges):
            let layout = MultipartByteranges(
                boundary: boundary(),
                partType: stored.fields().first("Content-Type"),
                bodySize: size,
                ranges: ranges
            )
            return multipart(stored, layout, serving) { stored.body($0) }
        }
    }

    /// A stored partial response can answer for the parts it holds.
    private func servePart(
        of stored: StoredResponse,
        _ request: CacheRequest,
        _ facts: RequestFacts,
        _ serving: Serving
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
        case .notModified: return notModified(stored, serving)
        case .rangeAllowed: break
        case .full, .forward, .preconditionFailed: return nil
        }
        switch ranges.resolve(bodySize: size) {
        case .single(let range) where parts.contains(range):
            return partial(stored, range, size: size, serving) {
                stored.body(parts.storedRange(of: range))
            }
        case .multi(let ranges) where ranges.allSatisfy(parts.contains):
            let layout = MultipartByteranges(
                boundary: boundary(),
                partType: stored.fields().first("Content-Type"),
                bodySize: size,
                ranges: ranges
            )
            return multipart(stored, layout, serving) { stored.body(parts.storedRange(of: $0)) }
        case .single, .multi, .whole, .unsatisfiable: return nil
        }
    }

    private func partial(
        _ stored: StoredResponse,
        _ range: Range<Int>,
        size: Int,
        _ serving: Serving,
        _ body: () -> BodyStream
    ) -> CacheResponse {
        var answer = response(stored, status: 206, serving)
        answer.fields["Content-Range"] = ContentRange(range: range, bodySize: size).text
        answer.fields["Content-Length"] = String(range.count)
        answer.body = body()
        return answer
    }

    private func multipart(
        _ stored: StoredResponse,
        _ layout: MultipartByteranges,
        _ serving: Serving,
        _ body: (Range<Int>) -> BodyStream
    ) -> CacheResponse {
        var pieces: [BodyStream] = []
        for (index, range) in layout.ranges.enumerated() {
            pieces.append(BodyStream(ByteChunk(layout.head(ofPart: index))))
            pieces.append(body(range))
        }
        pieces.append(BodyStream(ByteChunk(layout.tail)))
        var answer = response(stored, status: 206, serving)
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

    private func response(
        _ stored: StoredResponse,
        status: Int,
        _ serving: Serving,
        _ setBody: (inout BodyStream) -> Void = { _ in }
    ) -> CacheResponse {
        let remaining = Int(stored.facts.freshnessLifetimeSeconds) - serving.ageSeconds
        let isHit = serving.source != .revalidated
        let addsHit = configuration.cacheStatus == .added && isHit
        var section = stored.fields(reserving: headBytesMax) { target in
            let end = FieldSection.writeLine(trusted: "Age", to: target, at: 0) {
                DecimalText.write(serving.ageSeconds, into: $0)
            }
            return addsHit ? writeHitStatus(remaining, to: target, at: end) : end
        }
        if configuration.cacheStatus == .added, !isHit {
            section.append("Cache-Status", confirmedStatus(serving, remaining: remaining))
        }
        var info = CacheInfo(source: serving.source, tier: serving.tier)
        info.ageSeconds = serving.ageSeconds
        info.remainingSeconds = remaining
        info.storedAtSeconds = stored.stored.createdSeconds
        info.isStored = true
        info.originStatus = serving.originStatus
        info.originFields = serving.originFields
        info.fallbackError = serving.error
        info.userInfo = stored.userInfo
        var body = BodyStream.empty
        setBody(&body)
        return CacheResponse(status: status, fields: HeaderFields(section), body: body, info: info)
    }

    /// Room for Age and Cache-Status.
    private var headBytesMax: Int { 64 + 2 * DecimalText.bytesMax + statusPrefixes.hit.count }

    private func writeHitStatus(
        _ remaining: Int,
        to target: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) -> Int {
        FieldSection.writeLine(trusted: "Cache-Status", to: target, at: offset) { value in
            statusPrefixes.hit.withUnsafeBytes { prefix in
                value.copy(prefix, at: 0)
                let digits = UnsafeMutableRawBufferPointer(rebasing: value[prefix.count...])
                return prefix.count + DecimalText.write(remaining, into: digits)
            }
        }
    }

    private func confirmedStatus(_ serving: Serving, remaining: Int) -> String {
        var status = CacheStatus(identifier: configuration.name, outcome: .forwarded(.stale))
        status.forwardStatus = serving.originStatus
        status.isStored = true
        status.ttlSeconds = remaining
        return status.text
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
