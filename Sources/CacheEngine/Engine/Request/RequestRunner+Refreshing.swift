import HTTPCaching

/// The refresh that follows a response.
extension RequestRunner {
    /// Fields that concern the client's own transfer, and not the resource.
    private static let ownFields = [
        "Cache-Control", "Pragma", "Expect", "Max-Forwards", "TE",
    ]

    /// A fetch of the whole resource, without this client's own conditions and directives; `nil` if
    /// the policy allows none, or the request's content cannot be sent twice.
    func refreshContext(
        _ lookup: LookupResult,
        _ ticket: RemovalLedger.Ticket
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
        Conditional.removeConditions(from: &fields)
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
            ? refreshContext(context.found, context.ticket) : nil
    }

    private func wantsWhole(after response: CacheResponse, _ context: FetchContext) -> Bool {
        guard facts.hasRange, response.status == 206, response.info.source == .origin,
            response.info.isStored, policy.writes,
            services.configuration.caching.rangeMiss == .wholeBehind
        else { return false }
        return context.found.stored?.facts.flags.contains(.isPartial) ?? true
    }
}
