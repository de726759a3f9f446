import HTTPCaching

/// Sends one request to the origin, and checks the head of its response against the limits.
struct OriginExchange {
    let services: Services
    /// The key of the flight, whose gate limits the requests at the origin.
    let key: KeyHash
    /// The key of the resource, which a fetch must not request.
    let resource: KeyHash

    /// Sends the request, and returns when the head has arrived and is within the limits.
    ///
    /// The place in the key's gate is released when the body has ended or is released.
    nonisolated(nonsending) func ask(_ request: OriginRequest) async throws -> OriginAnswer {
        let (key, gate, recorder) = (key, services.gate, services.recorder)
        try await gate?.enter(key)
        recorder.counters.add(.originRequests)
        let requestSeconds = services.clock.nowSeconds
        let fetch = AncestorFetch(resource)
        do {
            let response = try await fetch.run { try await services.origin.fetch(request) }
            let expectedCount = try expectedBodyCount(of: response, to: request)
            let body: OriginBody
            if let chunk = Self.presentBody(of: response, expectedCount) {
                gate?.leave(key)
                fetch.end()
                recorder.counters.add(.originBytes, chunk.count)
                body = .present(chunk)
            } else {
                body = .arriving(
                    MeasuredBody(response.body, expected: expectedCount) { bytes in
                        gate?.leave(key)
                        fetch.end()
                        recorder.counters.add(.originBytes, bytes)
                    }
                )
            }
            return OriginAnswer(
                status: response.status,
                fields: HopByHop.strip(response.fields.section, for: .forwardingResponse),
                body: body,
                expectedCount: expectedCount,
                requestSeconds: requestSeconds,
                responseSeconds: services.clock.nowSeconds,
                order: services.tiers.arrivals.nextOrder()
            )
        } catch {
            gate?.leave(key)
            fetch.end()
            throw CacheError.originFailure(error)
        }
    }

    /// The body, if all of it arrived with the head.
    private static func presentBody(of response: OriginResponse, _ expected: Int?) -> ByteChunk? {
        guard let chunk = response.body.availableChunk, chunk.count == expected ?? chunk.count
        else { return nil }
        return chunk
    }

    /// Checks the head, and returns the length of the body that it announces.
    private func expectedBodyCount(
        of response: OriginResponse,
        to request: OriginRequest
    ) throws -> Int? {
        let limits = services.configuration.originLimits
        guard (200...999).contains(response.status) else {
            throw CacheError.misbehaved("The origin sent the invalid status \(response.status)")
        }
        guard response.fields.section.bytes.count <= limits.maximumHeadSize.bytes,
            response.fields.count <= limits.maximumFields
        else {
            throw CacheError.misbehaved(
                "The origin's head has \(response.fields.count) fields and "
                    + "\(response.fields.section.bytes.count) bytes; at most "
                    + "\(limits.maximumFields) and \(limits.maximumHeadSize.bytes) are allowed"
            )
        }
        if request.method == .head || response.status == 204 || response.status == 304 { return 0 }
        let fields = response.fields.section
        let length = ContentLength(in: fields)
        if length.isInvalid {
            let sent = PlainText.excerpt(response.fields["Content-Length"] ?? "")
            throw CacheError.misbehaved("The origin sent an invalid Content-Length: `\(sent)`")
        }
        // RFC 9112 §6.3: a transfer coding overrides the length.
        if fields.contains(lowercased: "transfer-encoding") { return response.body.count }
        return length.count ?? response.body.count
    }

    // MARK: The request

    /// The request that asks `question` on behalf of `context`.
    func request(for context: FetchContext, _ question: FetchQuestion) -> OriginRequest {
        var fields = context.request.fields.section
        var method = context.request.method
        switch question {
        case .plain: break
        case .whole: Conditional.removeConditions(from: &fields)
        case .conditional(let stored), .head(let stored):
            Conditional.makeConditionalFields(
                stored: stored.fields(),
                into: &fields,
                validators: services.configuration.caching.validators == .all
                    ? .all : .strongestOnly
            )
            if case .head = question { method = .head }
        case .rest(let rest):
            Conditional.makeRangeFields(
                stored: rest.stored.fields(),
                storedFacts: rest.stored.facts,
                missing: rest.gap,
                into: &fields
            )
        }
        if context.policy.bypassesIntermediaries, !fields.contains(lowercased: "cache-control") {
            fields.set("Cache-Control", "no-cache")
            fields.set("Pragma", "no-cache")
        }
        return OriginRequest(
            method: method,
            url: context.request.urlWithoutFragment,
            fields: HeaderFields(fields),
            body: context.request.body.map { context.upload?.watching($0) ?? $0 },
            timeout: context.request.options.timeout
                ?? services.configuration.originLimits.maximumHeadTime,
            onInformational: context.request.options.onInformational
        )
    }
}
