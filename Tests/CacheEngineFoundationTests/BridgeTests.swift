import CacheEngine
import Foundation
import FoundationNetworking
import Testing

@testable import CacheEngineFoundation

@Suite struct BridgeTests {
    @Test(arguments: [
        (URLRequest.CachePolicy.useProtocolCachePolicy, CachePolicy.useProtocolCachePolicy),
        (.reloadIgnoringLocalCacheData, .reloadIgnoringLocalCacheData),
        (.reloadIgnoringLocalAndRemoteCacheData, .reloadIgnoringLocalAndRemoteCacheData),
        (.returnCacheDataElseLoad, .returnCacheDataElseLoad),
        (.returnCacheDataDontLoad, .returnCacheDataDontLoad),
        (.reloadRevalidatingCacheData, .reloadRevalidatingCacheData),
    ])
    func policiesMeanTheSameOnBothSides(theirs: URLRequest.CachePolicy, ours: CachePolicy) {
        #expect(CachePolicy(theirs) == ours)
        #expect(URLRequest.CachePolicy(ours) == theirs)
    }

    @Test(arguments: [
        (URLError.Code.secureConnectionFailed, CacheError.Code.originUnreachable, "TLS"),
        (.serverCertificateHasBadDate, .originUnreachable, "expired"),
        (.serverCertificateUntrusted, .originUnreachable, "not trusted"),
        (.serverCertificateHasUnknownRoot, .originUnreachable, "unknown root"),
        (.serverCertificateNotYetValid, .originUnreachable, "clock"),
        (.clientCertificateRejected, .originFailed, "client certificate"),
        (.clientCertificateRequired, .originFailed, "client certificate"),
    ])
    func failureOfTLSHasACodeAndARemedy(
        theirs: URLError.Code,
        ours: CacheError.Code,
        remedy: String
    ) throws {
        for hasHead in [false, true] {
            let failure = SessionExchange.failure(URLError(theirs), hasHead: hasHead)
            let error = try #require(failure as? CacheError)
            #expect(error.code == (hasHead ? .bodyTruncated : ours))
            #expect(error.detail.contains(remedy))
            #expect(SessionExchange.originalCode(of: error) == theirs)
        }
    }

    @Test func policyWithoutAnEquivalentIsNil() {
        #expect(URLRequest.CachePolicy(.bypass) == nil)
        #expect(URLRequest.CachePolicy(.cachedThenRefresh) == nil)
    }

    @Test func requestCrossesBothWays() async throws {
        var request = URLRequest(url: try #require(URL(string: "http://a.test/x?y=%2F")))
        request.httpMethod = "QUERY"
        request.httpBody = Data("abc".utf8)
        request.cachePolicy = .returnCacheDataElseLoad
        request.timeoutInterval = 7
        request.setValue("1", forHTTPHeaderField: "X-A")
        let ours = try #require(CacheRequest(request))
        #expect(ours.method == .query)
        #expect(ours.url == "http://a.test/x?y=%2F")
        #expect(ours.fields["x-a"] == "1")
        #expect(ours.options.policy == .returnCacheDataElseLoad)
        #expect(ours.options.timeout == .seconds(7))
        request.timeoutInterval = .greatestFiniteMagnitude
        #expect(CacheRequest(request)?.options.timeout == .seconds(1_000_000_000))
        request.timeoutInterval = 7
        #expect(try await ours.body?.collect().text == "abc")
        let theirs = try #require(URLRequest(ours))
        #expect(theirs.url == request.url)
        #expect(theirs.httpMethod == "QUERY")
        #expect(theirs.cachePolicy == .returnCacheDataElseLoad)
        #expect(theirs.value(forHTTPHeaderField: "X-A") == "1")
    }

    @Test func defaultPolicyIsTheCachesOwn() throws {
        let request = URLRequest(url: try #require(URL(string: "http://a.test/")))
        #expect(CacheRequest(request)?.options.policy == nil)
    }

    @Test func dataCrossesBothWays() {
        for count in [0, 1, 1000] {
            let data = Data((0..<count).map { UInt8(truncatingIfNeeded: $0) })
            #expect(Data(ByteChunk(data)) == data)
            let slice = data.dropFirst(count / 2)
            #expect(Data(ByteChunk(slice)) == Data(slice))
        }
    }

    @Test func linesOfOneNameAreJoined() {
        let fields = HeaderFields([("A", "1"), ("B", "2"), ("a", "3")])
        #expect(fields.dictionary == ["A": "1, 3", "B": "2"])
    }

    @Test(arguments: [
        ("Cache-Control", "max-age=60", "max-age=315360000"),
        ("Cache-Control", "no-cache", "max-age=315360000"),
        ("Cache-Control", "private, No-Store", "max-age=315360000"),
        ("Cache-Control", "public", "public"),
        ("Cache-Control", "must-revalidate", "must-revalidate"),
    ])
    func misleadingDirectivesAreMovedAside(name: String, value: String, shaped: String) {
        let fields = DeliverableFields.shaped(HeaderFields([(name, value)]))
        #expect(fields[name] == shaped)
        #expect(fields["Origin-" + name] == (value == shaped ? nil : value))
    }

    @Test(arguments: [200, 203, 204, 206, 300, 301, 404, 405, 410, 414, 501])
    func statusesCacheableByDefaultAreDeliverable(status: Int) {
        #expect(DeliverableFields.isDeliverable(status: status, fields: [:]))
        #expect(!DeliverableFields.isDeliverable(status: status, fields: ["WWW-Authenticate": "x"]))
    }

    @Test(arguments: [302, 304, 307, 400, 401, 403, 500, 503, 504])
    func otherStatusesAreNotDeliverable(status: Int) {
        #expect(!DeliverableFields.isDeliverable(status: status, fields: [:]))
    }
}
