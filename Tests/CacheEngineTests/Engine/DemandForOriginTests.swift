import HTTPCaching
import Testing

@testable import CacheEngine

/// Which requests demand a response that the origin sends or confirms after them.
@Suite struct DemandForOriginTests {
    private static func demandsOrigin(
        _ fields: HeaderFields,
        _ policy: CachePolicy = .standard,
        _ directives: CachingRules.RequestDirectives = .honour
    ) -> Bool {
        var rules = CachingRules()
        rules.requestDirectives = directives
        let request = CacheRequest(url: "http://example.com/", fields: fields)
        return rules.demandsOrigin(rules.facts(of: request), policy)
    }

    @Test(
        arguments: [
            ([:], false), (["Cache-Control": "no-cache"], true),
            (["Cache-Control": "max-age=0"], true),
            (["Cache-Control": "max-age=1"], false), (["Pragma": "no-cache"], true),
            (["Cache-Control": "max-stale", "Pragma": "no-cache"], false),
            (["Cache-Control": "only-if-cached"], false),
        ] as [(HeaderFields, Bool)]
    )
    func directivesOfTheClientDecide(_ row: (HeaderFields, Bool)) {
        #expect(Self.demandsOrigin(row.0) == row.1)
        #expect(!Self.demandsOrigin(row.0, .standard, .ignore), "a cache may ignore them")
    }

    @Test func policyDecidesWhateverTheDirectives() {
        var policy = CachePolicy.standard
        policy.freshness = .alwaysValidate
        for directives in [CachingRules.RequestDirectives.honour, .ignore] {
            #expect(Self.demandsOrigin([:], policy, directives))
        }
    }
}
