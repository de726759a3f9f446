import CacheEngine
import Testing

@testable import CacheProxy

/// The responses to requests that fail.
extension ServerTests {
    @Test func errorsOfTheCacheBecomeStatuses() async throws {
        for (code, status) in [
            (CacheError.Code.originFailed, 502), (.originTimedOut, 504), (.notCached, 504),
            (.originMisbehaved, 502), (.requestInvalid, 400), (.shutDown, 503),
        ] {
            let responder = ScriptedResponder { _ in throw CacheError(code, detail: "x\r\ny") }
            try await withServer(responder) { server in
                let response = try await WireClient(server.port).exchange(Self.get)
                #expect(response.status == status)
                #expect(response["Proxy-Status"]?.contains(code.description) == true)
            }
        }
    }

    /// As those of a responder that is not the cache.
    @Test func errorsWithoutACodeAreNamedToo() async throws {
        struct Nameless: Error {}
        for (error, status, code) in [
            (Nameless(), 502, CacheError.Code.originFailed), (CancellationError(), 503, .shutDown),
        ] as [(any Error, Int, CacheError.Code)] {
            let responder = ScriptedResponder { _ in throw error }
            try await withServer(responder) { server in
                let response = try await WireClient(server.port).exchange(Self.get)
                #expect(response.status == status)
                #expect(response["Proxy-Status"]?.contains(code.description) == true)
            }
        }
    }
}
