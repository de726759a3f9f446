import HTTPCaching

/// The refresh that follows a response.
extension RequestRunner {
    /// Fields that concern the client's own transfer, and not the resource.
    private static let ownFields = [
        "Cache-Control", "Pragma", "Expect", "Max-Forwards", "TE",
    ]

    /// A fetch without this client's own conditions and directives; `nil` if the policy allows none, or
    /// the request's content cannot be sent twice.
    ///
    /// Of stored parts it asks for the range that the client got, unless the whole is wanted: a refresh
    /// must not cost the origin more than the request did.
    func refreshContext(
        _ lookup: LookupResult,
        _ ticket: RemovalLedger.Ticket,
        ofWhole: Bool = false
    ) -> FetchContext? {
        guard policy.onMiss == .load, policy.writes, !facts.onlyIfCached else { return nil }
        if let content = request.body, content.availableChunk == nil { return nil }
        var request = request
        if request.options.key == nil || request.method == .head {
            request.method = .get
            request.body = nil
        }
        request.options.onInformational = nil
        var fields = request.fields.section
        let range = ofWhole ? nil : rangeToRefresh(lookup)
        Conditional.removeConditions(from: &fields)
        if let range { fields.append("Range", range) }
        request.fields = HeaderFields(fields)
        for name in Self.ownFields { request.fields.remove(name) }
        let facts = services.configuration.caching.facts(of: request)
        return FetchContext(
            asked.with(request, facts),
            lookup: lookup,
            ticket: ticket,
            purpose: .refresh
        )
    }

    /// The fetch of the whole that follows the response, if it is a part that was fetched for this
    /// request, and the configuration wants the whole as well.
    func refreshOfWhole(after response: CacheResponse, _ context: FetchContext) -> FetchContext? {
        wantsWhole(after: response, context)
            ? refreshContext(context.found, context.ticket, ofWhole: true) : nil
    }

    /// The range that a refresh of stored parts asks for; `nil` if it asks for the whole.
    ///
    /// Of several ranges it is the first, and for a request without ranges the first that is stored: a
    /// confirmation covers all.
    private func rangeToRefresh(_ lookup: LookupResult) -> String? {
        guard let parts = lookup.stored?.parts, !fetchesWholes(ofBytes: parts.bodySize),
            !request.options.leavesStoring, !Mutant.refreshesPartsAsWholes.isOn
        else { return nil }
        var range = parts.parts.first
        if let size = parts.bodySize {
            switch RangeSet(request.fields.section)?.resolve(bodySize: size) {
            case .single(let wanted): range = wanted
            case .multi(let wanted): range = wanted.first
            case .whole, .unsatisfiable, nil: break
            }
        }
        return range.map { "bytes=\($0.lowerBound)-\($0.upperBound - 1)" }
    }

    /// Whether the configuration wants the whole of what is asked for in parts, and a whole of that size
    /// can be stored.
    private func fetchesWholes(ofBytes size: Int?) -> Bool {
        guard services.configuration.caching.rangeMiss == .wholeBehind else { return false }
        guard let size, !Mutant.fetchesWholesThatAreTooLarge.isOn else { return true }
        return services.tiers.hasRoom(forBody: size, headBytes: 0)
    }

    private func wantsWhole(after response: CacheResponse, _ context: FetchContext) -> Bool {
        guard facts.hasRange, response.status == 206, response.info.source == .origin,
            response.info.isStored, policy.writes,
            fetchesWholes(ofBytes: Self.wholeBytes(of: response))
        else { return false }
        return context.found.stored?.facts.flags.contains(.isPartial) ?? true
    }

    /// The size of the whole of which the response is a part.
    private static func wholeBytes(of response: CacheResponse) -> Int? {
        response.fields["Content-Range"].flatMap { ContentRange($0)?.bodySize }
    }
}
