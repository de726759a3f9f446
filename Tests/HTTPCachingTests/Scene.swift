import Testing

@testable import HTTPCaching

typealias Lines = [(String, String)]

/// One exchange for tables: the request, the response, and the results of the rules.
///
/// Every response is dated `Scene.now` unless its lines state another date, and arrives at
/// `Scene.now`.
struct Scene {
    /// Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110's examples.
    static let now: Int64 = 784_111_777

    var rules = StoringRules.shared
    var method = MethodKind.get
    var requestLines: Lines = []
    var status = 200
    var responseLines: Lines

    static func date(_ offset: Int64) -> String { HTTPDate.string(now + offset) }

    init(
        _ responseLines: Lines,
        status: Int = 200,
        method: MethodKind = .get,
        request: Lines = [],
        rules: StoringRules = .shared
    ) {
        self.responseLines = responseLines
        self.status = status
        self.method = method
        requestLines = request
        self.rules = rules
    }

    var request: RequestFacts {
        RequestFacts(method: method, fields: FieldSection(requestLines))
    }

    var responseFields: FieldSection {
        var fields = FieldSection(responseLines)
        if !fields.contains("Date") { fields.append("Date", Self.date(0)) }
        return fields
    }

    var response: ResponseFacts {
        ResponseFacts(
            status: status,
            fields: responseFields,
            rules: rules,
            receivedAtSeconds: Self.now
        )
    }

    var decision: StoreDecision {
        StoreDecision.decide(
            request: request,
            response: response,
            rules: rules,
            receivedAtSeconds: Self.now
        )
    }

    var lifetime: FreshnessLifetime {
        FreshnessLifetime.calculate(
            request: request,
            response: response,
            rules: rules,
            receivedAtSeconds: Self.now
        )
    }

    /// The facts that would be stored, whether or not the response may be stored.
    var stored: StoredFacts {
        StoredFacts(
            response: response,
            lifetime: lifetime,
            rules: rules,
            requestTimeSeconds: Self.now,
            responseTimeSeconds: Self.now
        )
    }

    /// The decision for a later request.
    func reuse(
        after seconds: Int64,
        request: Lines = [],
        isDeaf: Bool = false,
        preferences: ReusePreferences = ReusePreferences()
    ) -> ReuseDecision {
        let facts = RequestFacts(method: .get, fields: FieldSection(request))
        return ReuseDecision.decide(
            stored: stored,
            request: isDeaf ? facts.withoutDirectives : facts,
            nowSeconds: Self.now + seconds,
            preferences: preferences
        )
    }
}

extension FieldSection {
    /// The validators in a row of a table: an entity tag, and Last-Modified as seconds from
    /// `Scene.now`.
    ///
    /// An empty text means that the field is missing.
    init(validators: [String]) {
        self.init()
        if !validators[0].isEmpty { append("ETag", validators[0]) }
        if let offset = Int64(validators[1]) { append("Last-Modified", Scene.date(offset)) }
    }
}

extension StoreDecision {
    var refusal: StoreRefusal? {
        if case .refuse(let refusal) = self { return refusal }
        return nil
    }

    var lifetime: FreshnessLifetime? {
        if case .store(let lifetime) = self { return lifetime }
        return nil
    }
}

extension ReuseDecision {
    /// The decision without its age, for tables.
    var verdict: String {
        switch self {
        case .serve: "serve"
        case .serveStale: "serveStale"
        case .serveStaleThenRevalidate: "serveStaleThenRevalidate"
        case .revalidate: "revalidate"
        case .fetch: "fetch"
        case .gatewayTimeout: "gatewayTimeout"
        }
    }
}

/// One row of a table; its name is shown if it fails.
struct Row<Input: Sendable, Expected: Sendable>: Sendable, CustomTestStringConvertible {
    let name: String
    let input: Input
    let expected: Expected
    var testDescription: String { name }

    init(_ name: String, _ input: Input, _ expected: Expected) {
        self.name = name
        self.input = input
        self.expected = expected
    }
}
