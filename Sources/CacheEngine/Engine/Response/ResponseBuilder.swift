import HTTPCaching

/// Builds every response: from a plain hit, from a stored response (200, 206, 304, 412, 416), from
/// a fetched one, or as the cache's own (504).
struct ResponseBuilder {
    let services: Services

    @inline(__always)
    init(_ services: Services) { self.services = services }

    // MARK: From the store

    /// The response to a plain hit on `entry`.
    @inline(__always)
    func response(_ hit: PlainHit, of entry: Entry) -> CacheResponse {
        let fields = ServedFields(ByteChunk(entry.storage, hit.fields), ownLines(hit))
        return CacheResponse(
            status: hit.status,
            fields: HeaderFields(hit.isNotModified ? fields.ofNotModified : fields),
            body: BodyStream(ByteChunk(entry.storage, hit.body)),
            info: CacheInfo(hit)
        )
    }

    /// The lines that the response to a plain hit adds to the stored ones.
    @inline(__always)
    func ownLines(_ hit: PlainHit) -> OwnLines {
        OwnLines(
            ageSeconds: hit.fresh.ageSeconds,
            services.configuration.cacheStatus == .added
                ? .hit(services.statusName, remainingSeconds: hit.remainingSeconds)
                : .omitted
        )
    }

    /// The response to `request` from a stored one: the whole, a part of it, 304 or 416.
    ///
    /// `info` holds its source and its age. Returns `nil` if only the origin can answer, because of
    /// a condition that caches do not evaluate or a part that is not stored.
    func response(
        _ stored: StoredResponse,
        to request: CacheRequest,
        _ facts: RequestFacts,
        _ info: CacheInfo
    ) -> CacheResponse? {
        if stored.facts.flags.contains(.isPartial) {
            return response(fromPart: stored, to: request, facts, info)
        }
        switch conditions(
            of: request.fields.section,
            facts,
            on: stored.facts,
            stored.withEncodedFields
        ) {
        case .forward: return nil
        case .notModified: return notModified(head(stored, status: 304, info))
        case .preconditionFailed: return error(412, from: stored, info)
        case .full: return whole(stored, to: request, info)
        case .rangeAllowed:
            guard stored.facts.status == 200, let ranges = RangeSet(request.fields.section) else {
                return whole(stored, to: request, info)
            }
            return response(ranges.resolve(bodySize: stored.bodyCount), of: stored, info)
        }
    }

    private func whole(
        _ stored: StoredResponse,
        to request: CacheRequest,
        _ info: CacheInfo
    ) -> CacheResponse {
        var response = head(stored, status: Int(stored.facts.status), info)
        if request.method.kind != .head { response.body = stored.body }
        return response
    }

    /// A response with the head of a stored one, and no body.
    func head(_ stored: StoredResponse, status: Int, _ info: CacheInfo) -> CacheResponse {
        let age = info.ageSeconds ?? 0
        let remaining = lifetimeSeconds(of: stored, info.source) - age
        var info = info
        info.remainingSeconds = remaining
        info.storedAtSeconds = stored.stored.createdSeconds
        info.isStored = info.refusal == nil
        if stored.stored.isMemoryOnly { info.place = .memoryOnly }
        if let userInfo = stored.userInfo { info.userInfo = userInfo }
        let fields = ServedFields(
            stored.encodedFields,
            OwnLines(ageSeconds: age, cacheStatus(info, remainingSeconds: remaining))
        )
        return CacheResponse(status: status, fields: HeaderFields(fields), info: info)
    }

    /// An error with the fields of a stored response, except those that describe its body.
    func error(_ status: Int, from stored: StoredResponse, _ info: CacheInfo) -> CacheResponse {
        var response = head(stored, status: status, info)
        response.fields["Content-Encoding"] = nil
        response.fields["Content-Digest"] = nil
        response.fields["Content-Length"] = "0"
        return response
    }

    /// The lifetime of a stored response, which a soft purge ends.
    ///
    /// Only stale and fallback responses can have been purged softly: the others are fresh or
    /// confirmed.
    private func lifetimeSeconds(of stored: StoredResponse, _ source: CacheInfo.Source) -> Int {
        let facts: StoredFacts
        switch source {
        case .stale, .fallback: facts = services.tiers.currentFacts(of: stored)
        default: facts = stored.facts
        }
        return Int(facts.freshnessLifetimeSeconds)
    }

    // MARK: Conditions

    /// Evaluates the client's own conditions against a stored or an arriving response; no other
    /// place in the engine does so.
    ///
    /// `fields` are those of the request; `withFields` lends the encoded ones of that response, if
    /// they are needed.
    func conditions(
        of fields: @autoclosure () -> FieldSection,
        _ facts: RequestFacts,
        on stored: StoredFacts,
        _ withFields: (
            (_ encoded: UnsafeRawBufferPointer) -> Conditional.Evaluation
        ) -> Conditional.Evaluation
    ) -> Conditional.Evaluation {
        guard facts.isConditional || facts.hasRange else { return .full }
        let fields = fields()
        return withFields { encoded in
            Conditional.evaluateClientConditionals(
                request: fields,
                requestFacts: facts,
                stored: encoded,
                storedFacts: stored,
                nowSeconds: services.clock.nowSeconds
            )
        }
    }

    /// The response as a 304.
    func notModified(_ response: consuming CacheResponse) -> CacheResponse {
        response.status = 304
        response.fields = response.fields.ofNotModified
        response.body = .empty
        return response
    }

    // MARK: Cache-Status

    private func cacheStatus(
        _ info: CacheInfo,
        remainingSeconds: Int
    ) -> OwnLines.Status {
        guard services.configuration.cacheStatus == .added else { return .omitted }
        let forward: CacheStatus.Forward
        switch info.source {
        case .revalidated: forward = info.wasFresh ? .request : .stale
        // RFC 9211 §2: a fallback response is not a hit; the request was forwarded and failed.
        case .fallback: forward = remainingSeconds > 0 ? .request : .stale
        default:
            return .hit(services.statusName, remainingSeconds: remainingSeconds)
        }
        var status = CacheStatus(.forwarded(forward))
        status.forwardStatus = info.originStatus
        if info.isStored { status.ttlSeconds = remainingSeconds }
        if info.source == .revalidated {
            status.isStored = info.isStored
            status.detail = info.refusal?.description
        } else {
            let error = info.fallbackError as? CacheError
            status.detail = error?.code.description ?? "fallback"
        }
        return .other(services.statusName, status)
    }

    // MARK: Of the cache's own

    /// RFC 9111 §5.2.1.7: the client forbids a request to the origin, and no stored response may be
    /// used.
    func gatewayTimeout() -> CacheResponse {
        var fields: HeaderFields = ["Content-Length": "0"]
        if services.configuration.cacheStatus == .added {
            let status = CacheStatus(.generated(.onlyIfCached))
            fields["Cache-Status"] = status.text(of: services.configuration.name)
        }
        return CacheResponse(status: 504, fields: fields, info: CacheInfo(source: .generated))
    }
}

extension CacheInfo {
    /// The description of a plain hit.
    @inline(__always)
    init(_ hit: PlainHit) {
        self.init(source: .fresh, tier: hit.tier)
        ageSeconds = hit.fresh.ageSeconds
        remainingSeconds = hit.remainingSeconds
        storedAtSeconds = hit.createdSeconds
        isStored = true
        if hit.isMemoryOnly { place = .memoryOnly }
    }

    init(source: Source, tier: Tier?, ageSeconds: Int) {
        self.init(source: source, tier: tier)
        self.ageSeconds = ageSeconds
    }
}
