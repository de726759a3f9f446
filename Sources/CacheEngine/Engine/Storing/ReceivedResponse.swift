import HTTPCaching

/// A response as it was received, and everything that the rules of storing read from it.
///
/// The rules are applied only here, so that each step sees the same facts.
///
/// An object, because decisions about it are passed on.
final class ReceivedResponse: Sendable {
    /// The request as the rules of storing see it.
    let request: RequestFacts
    let facts: ResponseFacts
    let fields: FieldSection
    let rules: StoringRules
    /// Unix seconds at which the request was sent, and at which the head arrived.
    let requestSeconds: Int64
    let responseSeconds: Int64

    init(
        status: Int,
        fields: FieldSection,
        to request: RequestFacts,
        rules: StoringRules,
        requestSeconds: Int64,
        responseSeconds: Int64
    ) {
        self.request = request
        self.fields = fields
        self.rules = rules
        self.requestSeconds = requestSeconds
        self.responseSeconds = responseSeconds
        facts = ResponseFacts(
            status: status,
            fields: fields,
            rules: rules,
            receivedAtSeconds: responseSeconds
        )
    }

    /// Whether the response may be stored, and with which lifetime (RFC 9111 §3).
    var decision: StoreDecision {
        StoreDecision.decide(
            request: request,
            response: facts,
            rules: rules,
            receivedAtSeconds: responseSeconds
        )
    }

    /// Whether only this request keeps the response from being stored: its credentials, its cookie
    /// or its `no-store`.
    ///
    /// That says nothing against the stored response, which another request brought.
    var isRefusedToThisRequestAlone: Bool {
        var impersonal = request
        impersonal.flags.subtract([.hasAuthorization, .hasCookie, .noStore])
        guard case .refuse = decision,
            case .store = StoreDecision.decide(
                request: impersonal,
                response: facts,
                rules: rules,
                receivedAtSeconds: responseSeconds
            )
        else { return false }
        return true
    }

    /// The effect of the response on an older one if it is not stored itself.
    var supersession: StoreDecision.Supersession {
        StoreDecision.supersession(
            request: request,
            response: facts,
            rules: rules,
            receivedAtSeconds: responseSeconds
        )
    }

    /// The lifetime of the response, whether or not HTTP would store it.
    var lifetime: FreshnessLifetime {
        FreshnessLifetime.calculate(
            request: request,
            response: facts,
            rules: rules,
            receivedAtSeconds: responseSeconds
        )
    }

    /// The fields to keep.
    ///
    /// `Age` is left out: it describes one transfer, and the stored facts count it.
    var storedFields: FieldSection {
        var stored = StoredFields.make(
            from: fields,
            response: facts,
            rules: rules,
            receivedAtSeconds: responseSeconds
        )
        if facts.flags.contains(.hasAge) { stored.remove(lowercased: "age") }
        return stored
    }

    /// The numbers that decide reuse.
    func storedFacts(_ lifetime: FreshnessLifetime) -> StoredFacts {
        StoredFacts(
            response: facts,
            lifetime: lifetime,
            rules: rules,
            requestTimeSeconds: requestSeconds,
            responseTimeSeconds: responseSeconds
        )
    }
}
