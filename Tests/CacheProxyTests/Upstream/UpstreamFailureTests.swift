import CacheEngine
import CurlOrigin
import Platform
import Testing

@testable import CacheProxy

/// Failures that are the origin's, and those of this machine.
@Suite struct UpstreamFailureTests {
    @Test(
        arguments: [
            (EAI_SYSTEM, EMFILE), (EAI_SYSTEM, ENFILE), (EAI_SYSTEM, ENOBUFS), (EAI_SYSTEM, ENOMEM),
            (EAI_AGAIN, EMFILE), (EAI_MEMORY, 0),
        ] as [(Int32, Int32)]
    )
    func lookUpThatLacksAFileCountsAgainstNoOrigin(code: Int32, systemCode: Int32) throws {
        let failure = LookUpFailure(code: code, systemCode: systemCode)
        let error = UpstreamFailure.unresolved("a.test", failure)
        let fault = try #require(error as? LocalLack)
        #expect(fault.shown.code == .originFailed)
        #expect("\(fault)".hasPrefix("Cannot look up a.test: "))
    }

    @Test(arguments: [EADDRNOTAVAIL, EAGAIN, ENOBUFS, ENOMEM])
    func connectionThatLacksAPortCountsAgainstNoOrigin(code: Int32) throws {
        let error = UpstreamFailure.unconnected("a.test", code: code)
        let fault = try #require(error as? LocalLack)
        #expect("\(fault)".hasPrefix("Cannot open a socket to the origin: "))
    }

    @Test(arguments: [ECONNREFUSED, ENETUNREACH, EHOSTUNREACH, ETIMEDOUT, ECONNRESET])
    func connectionThatIsRefusedIsTheOriginsFault(code: Int32) throws {
        let error = UpstreamFailure.unconnected("a.test", code: code)
        let fault = try #require(error as? CacheError)
        #expect(fault.code == .originUnreachable)
        #expect(fault.detail.hasPrefix("Cannot connect to a.test: "))
    }

    @Test(
        arguments: [
            (EAI_SYSTEM, 0), (EAI_SYSTEM, ECONNREFUSED), (EAI_AGAIN, 0), (EAI_AGAIN, ETIMEDOUT),
            (EAI_NONAME, EMFILE), (EAI_FAIL, 0),
        ] as [(Int32, Int32)]
    )
    func nameThatIsNotFoundIsTheOriginsFault(code: Int32, systemCode: Int32) throws {
        let failure = LookUpFailure(code: code, systemCode: systemCode)
        let error = UpstreamFailure.unresolved("a.test", failure)
        let fault = try #require(error as? CacheError)
        #expect(fault.code == .originUnreachable)
        #expect(fault.detail.hasPrefix("Cannot find the address of a.test: "))
    }
}
