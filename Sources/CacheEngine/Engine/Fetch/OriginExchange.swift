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
        try await services.gate?.enter(key)
        services.recorder.counters.add(.originRequests)
        let requestSeconds = services.clock.nowSeconds
        let fetch = AncestorFetch(resource)
        do {
            let response = try await fetch.run { try await services.origin.fetch(request) }
            return try answer(
                response,
                isHead: request.method == .head,
                requestSeconds: requestSeconds,
                fetch
            )
        } catch {
            release(fetch, bytes: 0)
            throw CacheError.originFailure(error)
        }
    }

    /// Sends the request without a task; `completion` gets what `ask` would return or throw.
    ///
    /// - Returns: The exchange; `nil`, and `completion` is not called, if the request needs a task.
    func begin(
        _ request: consuming OriginRequest,
        at origin: any LoopOrigin,
        _ completion: @escaping @Sendable (consuming BegunAnswer) -> Void
    ) -> (any LoopExchange)? {
        if let gate = services.gate, !gate.takePlace(key) { return nil }
        let requestSeconds = services.clock.nowSeconds
        let isHead = request.method == .head
        let exchange = origin.begin(request) { answered in
            switch consume answered {
            case .response(let response):
                services.recorder.counters.add(.originRequests)
                do {
                    completion(
                        .answer(
                            try answer(
                                response,
                                isHead: isHead,
                                requestSeconds: requestSeconds,
                                nil
                            )
                        )
                    )
                } catch {
                    release(nil, bytes: 0)
                    completion(.failure(CacheError.originFailure(error)))
                }
            case .failure(let error):
                services.recorder.counters.add(.originRequests)
                release(nil, bytes: 0)
                completion(.failure(CacheError.originFailure(error)))
            case .unsent:
                if !Mutant.keepsPlacesOfUnsent.isOn { release(nil, bytes: 0) }
                completion(.unsent)
            }
        }
        if exchange == nil { release(nil, bytes: 0) }
        return exchange
    }

    /// Gives back the place in the gate, and ends the fetch: the body has ended, or none comes.
    private func release(_ fetch: AncestorFetch?, bytes: Int) {
        services.gate?.leave(key)
        fetch?.end()
        if bytes > 0 { services.recorder.counters.add(.originBytes, bytes) }
    }

    /// The origin's answer, if its head is within the limits.
    private func answer(
        _ response: OriginResponse,
        isHead: Bool,
        requestSeconds: Int64,
        _ fetch: AncestorFetch?
    ) throws -> OriginAnswer {
        let fields = response.fields.section
        let length = ContentLength(in: fields)
        let expectedCount = try expectedBodyCount(of: response, length, isHead: isHead)
        let body: OriginBody
        if let chunk = Self.presentBody(of: response, expectedCount) {
            release(fetch, bytes: chunk.count)
            body = .present(chunk)
        } else {
            body = .arriving(
                MeasuredBody(response.body, expected: expectedCount) { release(fetch, bytes: $0) }
            )
        }
        return OriginAnswer(
            status: response.status,
            fields: length.hasConnectionFields ? Self.withoutFraming(fields, length) : fields,
            body: body,
            expectedCount: expectedCount,
            requestSeconds: requestSeconds,
            responseSeconds: services.clock.nowSeconds,
            order: services.tiers.arrivals.nextOrder()
        )
    }

    /// The fields without those of the connection, and without a length that a transfer coding
    /// overrides (RFC 9112 §6.3).
    private static func withoutFraming(
        _ fields: FieldSection,
        _ length: ContentLength
    ) -> FieldSection {
        var kept = HopByHop.strip(fields, for: .forwardingResponse)
        if length.isOverridden { kept.remove(lowercased: "content-length") }
        return kept
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
        _ length: ContentLength,
        isHead: Bool
    ) throws -> Int? {
        let limits = services.configuration.originLimits
        guard (200...999).contains(response.status) else {
            throw CacheError.misbehaved("The origin sent the invalid status \(response.status)")
        }
        let fields = response.fields.section
        guard fields.bytes.count <= limits.maximumHeadSize.bytes,
            length.lineCount <= limits.maximumFields
        else {
            throw CacheError.misbehaved(
                "The origin's head has \(length.lineCount) fields and \(fields.bytes.count) bytes; "
                    + "at most \(limits.maximumFields) and \(limits.maximumHeadSize.bytes) are "
                    + "allowed"
            )
        }
        if isHead || response.status == 204 || response.status == 304 { return 0 }
        if length.isInvalid {
            let sent = PlainText.excerpt(response.fields["Content-Length"] ?? "")
            throw CacheError.misbehaved("The origin sent an invalid Content-Length: `\(sent)`")
        }
        return length.isOverridden ? response.body.count : length.count ?? response.body.count
    }

    // MARK: The request

    /// The request that asks `question` on behalf of `context`.
    func request(for context: FetchContext, _ question: FetchQuestion) -> OriginRequest {
        var fields = context.asked.request.fields.section
        var method = context.asked.request.method
        switch question {
        case .plain: break
        case .whole: Conditional.removeConditions(from: &fields)
        case .conditional(let stored), .head(let stored):
            makeConditional(&fields, stored)
            if case .head = question { method = .head }
        case .part(let stored):
            let range = fields.values("Range")
            makeConditional(&fields, stored)
            for value in range { fields.append("Range", value) }
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
            url: context.asked.request.url.withoutFragment,
            fields: HeaderFields(fields),
            body: context.asked.request.body.map { context.upload?.watching($0) ?? $0 },
            timeout: context.asked.request.options.timeout
                ?? services.configuration.originLimits.maximumHeadTime,
            onInformational: context.asked.request.options.onInformational
        )
    }

    private func makeConditional(_ fields: inout FieldSection, _ stored: StoredResponse) {
        Conditional.makeConditionalFields(
            stored: stored.fields(),
            into: &fields,
            validators: services.configuration.caching.validators == .all ? .all : .strongestOnly
        )
    }
}
