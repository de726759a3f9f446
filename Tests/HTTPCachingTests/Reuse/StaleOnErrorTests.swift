import Testing

@testable import HTTPCaching

@Suite("Stale when the origin fails, RFC 5861 §4 and RFC 9111 §4.2.4")
struct StaleOnErrorTests {
    private static func allows(
        _ failure: StaleOnError.Failure,
        _ control: String,
        after seconds: Int64,
        request: Lines = [],
        isDeaf: Bool = false,
        preferences: ReusePreferences = ReusePreferences()
    ) -> Bool {
        let facts = RequestFacts(method: .get, fields: FieldSection(request))
        return StaleOnError.allows(
            failure,
            stored: Scene([("Cache-Control", control)]).stored,
            request: isDeaf ? facts.withoutDirectives : facts,
            nowSeconds: Scene.now + seconds,
            preferences: preferences
        )
    }

    @Test("RFC 5861 §4: 500, 502, 503 and 504 count as errors, no other answer does")
    func whichStatusesAreErrors() {
        for status in 100...599 {
            let isError = [500, 502, 503, 504].contains(status)
            let isAllowed = Self.allows(
                .status(status),
                "max-age=60, stale-if-error=99",
                after: 70
            )
            #expect(isAllowed == isError, "\(status)")
        }
    }

    @Test("RFC 5861 §4: the window opens when freshness ends")
    func window() {
        let control = "max-age=60, stale-if-error=10"
        for failure in [StaleOnError.Failure.noResponse, .status(503)] {
            #expect(Self.allows(failure, control, after: 30))
            #expect(Self.allows(failure, control, after: 69))
            #expect(!Self.allows(failure, control, after: 70))
        }
        #expect(!Self.allows(.noResponse, "max-age=60, stale-if-error=x", after: 60))
    }

    @Test("§4.2.4: without a directive, only an unreachable origin is covered")
    func disconnected() {
        #expect(Self.allows(.noResponse, "max-age=60", after: 60))
        #expect(Self.allows(.noResponse, "max-age=60", after: 60 + 86_399))
        #expect(!Self.allows(.noResponse, "max-age=60", after: 60 + 86_400))
        #expect(!Self.allows(.status(503), "max-age=60", after: 60))
        var preferences = ReusePreferences()
        preferences.staleOnErrorSeconds = 5
        preferences.staleOnDisconnectSeconds = 0
        #expect(Self.allows(.status(503), "max-age=60", after: 64, preferences: preferences))
        #expect(!Self.allows(.status(503), "max-age=60", after: 65, preferences: preferences))
        #expect(!Self.allows(.noResponse, "max-age=60", after: 60, preferences: preferences))
    }

    @Test("§4.2.4: some responses are never served stale")
    func forbidden() {
        for directive in ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=60"] {
            let control = "max-age=60, stale-if-error=99, \(directive)"
            #expect(!Self.allows(.noResponse, control, after: 60), "\(directive)")
            #expect(!Self.allows(.status(503), control, after: 60), "\(directive)")
        }
    }

    @Test("alwaysValidate: no stored response stands in, however fresh it is")
    func nothingStandsInForAValidation() {
        var preferences = ReusePreferences()
        preferences.freshness = .alwaysValidate
        preferences.staleOnErrorSeconds = 99
        for failure in [StaleOnError.Failure.noResponse, .status(503)] {
            for seconds in [0, 30, 70] as [Int64] {
                let isAllowed = Self.allows(
                    failure,
                    "max-age=60, stale-if-error=99",
                    after: seconds,
                    request: [("Cache-Control", "stale-if-error=99")],
                    preferences: preferences
                )
                #expect(!isAllowed)
            }
        }
    }

    @Test("RFC 5861 §4: the client may ask for it too")
    func askedByTheClient() {
        let request: Lines = [("Cache-Control", "stale-if-error=20")]
        #expect(Self.allows(.status(503), "max-age=60", after: 79, request: request))
        #expect(!Self.allows(.status(503), "max-age=60", after: 80, request: request))
        #expect(!Self.allows(.status(503), "max-age=60, no-cache", after: 61, request: request))
        let isAllowed = Self.allows(
            .status(503),
            "max-age=60",
            after: 61,
            request: request,
            isDeaf: true
        )
        #expect(!isAllowed)
    }
}
