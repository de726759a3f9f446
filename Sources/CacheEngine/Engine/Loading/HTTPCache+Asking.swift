import HTTPCaching

/// What an origin answered, and when.
struct OriginAnswer: Sendable {
    var status: Int
    var fields: FieldSection
    var body: MeasuredBody
    /// The announced length of the body.
    var expectedCount: Int?
    /// The length of the body that came with the head, whole; nil for one that has yet to come.
    var presentCount: Int?
    /// Unix seconds at which the request was sent, and the head arrived.
    var requestSeconds: Int64
    var responseSeconds: Int64
}

extension HTTPCache {
    /// The keys that this task, or one it descends from, is fetching.
    @TaskLocal static var keysBeingLoaded: [KeyHash] = []

    /// Sends one request to the origin and checks the head of its answer.
    ///
    /// The place in the key's gate is given back when the body has ended or is let go.
    func ask(_ request: OriginRequest, for key: KeyHash) async throws -> OriginAnswer {
        try await gate?.enter(key)
        recorder.counters.add(.originRequests)
        let requestSeconds = clock.nowSeconds
        do {
            let response = try await Self.$keysBeingLoaded.withValue(
                Self.keysBeingLoaded + [key]
            ) { try await origin.fetch(request) }
            let expectedCount = try expectedBodyCount(of: response, to: request)
            let body = MeasuredBody(response.body, expected: expectedCount) {
                [gate, recorder] bytes in
                gate?.leave(key)
                recorder.counters.add(.originBytes, bytes)
            }
            return OriginAnswer(
                status: response.status,
                fields: HopByHop.strip(response.fields.section, for: .forwardingResponse),
                body: body,
                expectedCount: expectedCount,
                presentCount: Self.presentCount(of: response, expectedCount),
                requestSeconds: requestSeconds,
                responseSeconds: clock.nowSeconds
            )
        } catch {
            gate?.leave(key)
            throw Self.typed(error)
        }
    }

    private static func presentCount(of response: OriginResponse, _ expected: Int?) -> Int? {
        guard let present = response.body.availableChunk?.count,
            present == expected ?? present
        else { return nil }
        return present
    }

    /// Checks the head, and reads from it how long the body will be.
    private func expectedBodyCount(
        of response: OriginResponse,
        to request: OriginRequest
    ) throws -> Int? {
        let limits = configuration.originLimits
        guard (200...999).contains(response.status) else {
            throw Self.misbehaved("The origin answered with status \(response.status)")
        }
        guard response.fields.section.bytes.count <= limits.headBytesMax,
            response.fields.count <= limits.fieldsMax
        else { throw Self.misbehaved("The origin's head is larger than the limit") }
        if request.method == .head || response.status == 204 || response.status == 304 { return 0 }
        let facts = ResponseFacts(
            status: response.status,
            fields: response.fields.section,
            targets: [],
            receivedAtSeconds: clock.nowSeconds
        )
        if facts.flags.contains(.hasInvalidContentLength) {
            throw Self.misbehaved("The origin's Content-Length is none")
        }
        // RFC 9112 §6.3: a transfer coding overrides the length.
        if facts.flags.contains(.hasTransferEncoding) { return response.body.count }
        return facts.contentLength ?? response.body.count
    }

    static func misbehaved(_ detail: String) -> CacheError {
        CacheError(.originMisbehaved, detail: detail)
    }

    /// Every failure as one of ours; a cancellation stays what it is.
    static func typed(_ error: any Error) -> any Error {
        if error is CacheError || error is CancellationError { return error }
        return CacheError(.originFailed, detail: String(describing: error))
    }

    // MARK: The request

    enum Question {
        /// The resource, as the caller asks for it.
        case plain
        /// The resource, unless it is the one stored here.
        case conditional(StoredResponse)
        /// Whether the stored one is current, without the content.
        case head(StoredResponse)
    }

    /// The request to send for `load`.
    func originRequest(for load: Load, _ question: Question) -> OriginRequest {
        var fields = load.request.fields.section
        var method = load.request.method
        switch question {
        case .plain: break
        case .conditional(let stored), .head(let stored):
            Conditional.makeConditionalFields(
                stored: stored.fields(),
                into: &fields,
                validators: configuration.storing.validators == .all ? .all : .strongestOnly
            )
            if case .head = question { method = .head }
        }
        if load.policy.bypassesIntermediaries, !fields.contains(lowercased: "cache-control") {
            fields.set("Cache-Control", "no-cache")
            fields.set("Pragma", "no-cache")
        }
        return OriginRequest(
            method: method,
            url: load.request.urlWithoutFragment,
            fields: HeaderFields(fields),
            body: load.request.body,
            timeoutSeconds: load.request.options.timeoutSeconds
                ?? configuration.originLimits.headSecondsMax,
            onInformational: load.request.options.onInformational
        )
    }
}

extension CacheRequest {
    /// Whether the key says all that the answer depends on: GET and HEAD without content, or
    /// whatever the caller has named.
    ///
    /// An origin that looks at the content of a GET, which means nothing (RFC 9110 §9.3.1), would
    /// otherwise have its answer served to those who sent none.
    var isAnsweredByKey: Bool {
        if !options.isUsual, options.key != nil { return true }
        switch method.kind {
        case .get, .head: break
        default: return false
        }
        if case .none = body { return true }
        return body?.count == 0
    }

    /// Whether it is a GET that says nothing but what it wants.
    var isPlain: Bool {
        guard case .get = method.kind else { return false }
        return fields.areSilent
    }

    var urlWithoutFragment: String {
        guard let hash = url.utf8.firstIndex(of: UInt8(ascii: "#")) else { return url }
        return String(url[..<hash])
    }
}
