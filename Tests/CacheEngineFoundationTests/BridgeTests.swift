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

    @Test(arguments: [
        [String: String](), ["X-A": "1"], ["Vary": "Accept"], ["Cache-Control": "public"],
        ["Cache-Control": "max-age=60"], ["Cache-Control": "no-cache", "ETag": "\"1\""],
        ["Cache-Control": "max-age=315360000"], ["Expires": "0"],
        ["Cache-Control": "public", "Expires": "Thu, 01 Dec 2095 16:00:00 GMT"],
        ["Cache-Control": "max-age=5", "Expires": "0", "Vary": "Accept, Cookie"],
        ["Cache-Control": "must-revalidate", "Vary": "Accept"],
    ])
    func shapedFieldsAreRestored(fields: [String: String]) {
        let shaped = DeliverableFields.shaped(HeaderFields(fields))
        #expect(DeliverableFields.restored(shaped).dictionary == fields)
        #expect(DeliverableFields.restored(HeaderFields(fields)).dictionary == fields)
    }

    @Test func fieldOfTheProgramIsNotReplacedByTheOrigins() {
        let origin: HeaderFields = ["Cache-Control": "max-age=60", "Vary": "Accept"]
        var changed = DeliverableFields.shaped(origin)
        changed["Cache-Control"] = "max-age=5"
        let restored = DeliverableFields.restored(changed)
        #expect(restored["Cache-Control"] == "max-age=5")
        #expect(restored["Vary"] == "Accept")
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

    @Test func decodedBodyHasNeitherCodingNorLength() async throws {
        let url = try #require(URL(string: "http://a.test/"))
        func fields(_ length: String?, _ bytes: Int) throws -> HeaderFields {
            var fields = ["Content-Encoding": "gzip", "X-A": "1"]
            fields["Content-Length"] = length
            let head = HTTPURLResponse(
                url: url,
                statusCode: 200,
                httpVersion: nil,
                headerFields: fields
            )
            return CacheResponse(try #require(head), body: Data(count: bytes)).fields
        }
        #expect(try fields("500", 2_000) == ["X-A": "1"])
        #expect(try fields(nil, 2_000) == ["X-A": "1"])
        #expect(try fields("500", 500).count == 3, "The body is as it came")
        #expect(try fields("500", 0).count == 3, "The response to a HEAD")
    }

    /// A coded body of the cache comes back with its coding, also if no field stated its length.
    @Test func codedBodyCrossesBothWays() async throws {
        let url = try #require(URL(string: "http://a.test/"))
        let coded = CacheResponse(
            status: 200,
            fields: ["Content-Encoding": "br"],
            body: BodyStream(ByteChunk("coded"))
        )
        let theirs = try await coded.cachedURLResponse(url: url, upTo: .megabytes(1))
        let ours = CacheResponse(try #require(theirs))
        #expect(ours.fields == ["Content-Encoding": "br", "Content-Length": "5"])
    }

    @Test func errorIsDescribedToFoundation() {
        let error: any Error = CacheError(.notCached, detail: "Nothing is stored")
        #expect(error.localizedDescription == "notCached: Nothing is stored")
    }
}
