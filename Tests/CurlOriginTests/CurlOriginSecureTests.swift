import CacheEngine
import CacheTestSupport
import CurlOrigin
import Foundation
import Testing

/// TLS and HTTP/2, tested with nginx.
@Suite(.timeLimit(.minutes(1))) struct CurlOriginSecureTests {
    private static let locations = """
        location = /protocol { return 200 "$server_protocol"; }
        location = /target { return 200 "$request_uri"; }
        location = /host { return 200 "$host"; }
        location = /method { return 200 "$request_method $http_x_probe $content_length"; }
        location = /missing { return 404 "none"; }
        location = /hang { limit_rate 1; limit_rate_after 10; alias /dev/zero; }
        """

    let server: NginxServer

    init() throws { server = try NginxServer(locations: Self.locations) }

    private func origin(_ version: CurlConfiguration.ProtocolVersion = .automatic) -> CurlOrigin {
        let verification = CurlConfiguration.Verification.authorities(file: server.authorityFile)
        return CurlOrigin(
            configuration: .init(protocolVersion: version, verification: verification)
        )
    }

    private func text(_ origin: CurlOrigin, _ path: String) async throws -> String {
        let response = try await origin.fetch(OriginRequest(url: server.baseURL + path))
        return try await response.body.collect().text
    }

    @Test func versionIsAgreedInTheHandshake() async throws {
        #expect(try await text(origin(), "/protocol") == "HTTP/2.0")
        #expect(try await text(origin(.http1), "/protocol") == "HTTP/1.1")
    }

    @Test func certificateOfAnUnknownAuthorityIsRefused() async throws {
        let request = OriginRequest(url: server.baseURL + "/protocol")
        await #expect {
            _ = try await CurlOrigin().fetch(request)
        } throws: {
            guard let error = $0 as? CacheError else { return false }
            return error.code == .originUnreachable && error.detail.contains("certificate")
        }
        let trusting = CurlOrigin(configuration: .init(verification: .none))
        #expect(try await trusting.fetch(request).status == 200)
    }

    /// The system's authorities are changed only where root runs the tests, as in CI.
    @Test(.enabled(if: SystemAuthority.canBeAdded))
    func authoritiesOfAFileReplaceThoseOfTheSystem() async throws {
        let added = try SystemAuthority(from: server)
        defer { added.remove() }
        let request = OriginRequest(url: server.baseURL + "/protocol")
        #expect(try await CurlOrigin().fetch(request).status == 200)
        let other = try NginxServer(locations: "location = / { return 200; }")
        let origin = CurlOrigin(
            configuration: .init(verification: .authorities(file: other.certificateFile))
        )
        await #expect { _ = try await origin.fetch(request) } throws: {
            ($0 as? CacheError)?.code == .originUnreachable
        }
        #expect(try await origin.fetch(OriginRequest(url: other.baseURL + "/")).status == 200)
    }

    @Test func certificateOfAnotherHostIsRefused() async throws {
        let request = OriginRequest(url: "https://localhost:\(server.port)/protocol")
        await #expect { _ = try await origin().fetch(request) } throws: {
            ($0 as? CacheError)?.code == .originUnreachable
        }
    }

    @Test(arguments: [CurlConfiguration.ProtocolVersion.automatic, .http1])
    func requestIsTheSameInEitherVersion(version: CurlConfiguration.ProtocolVersion) async throws {
        let origin = origin(version)
        #expect(try await text(origin, "/target") == "/target")
        #expect(try await text(origin, "/./target?%zz&x=%2F") == "/./target?%zz&x=%2F")
        let put = OriginRequest(
            method: .put,
            url: server.baseURL + "/method",
            fields: ["X-Probe": "a b"],
            body: BodyStream(ByteChunk("content"))
        )
        let response = try await origin.fetch(put)
        #expect(try await response.body.collect().text == "PUT a b 7")
        let missing = try await origin.fetch(OriginRequest(url: server.baseURL + "/missing"))
        #expect(missing.status == 404)
        let head = OriginRequest(method: .head, url: server.baseURL + "/protocol")
        #expect(try await origin.fetch(head).body.collect().isEmpty)
        let hosted = OriginRequest(url: server.baseURL + "/host", fields: ["Host": "example.org"])
        #expect(try await origin.fetch(hosted).body.collect().text == "example.org")
    }

    @Test(arguments: [CurlConfiguration.ProtocolVersion.automatic, .http1])
    func manyLargeBodiesArriveWholeAtOnce(
        version: CurlConfiguration.ProtocolVersion
    ) async throws {
        let content = Data((0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
        try server.write(content, to: "large")
        let origin = origin(version)
        let url = server.baseURL + "/large"
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<30 {
                group.addTask {
                    let response = try await origin.fetch(OriginRequest(url: url))
                    return try await response.body.collect().array.elementsEqual(content)
                }
            }
            for try await isEqual in group { #expect(isEqual) }
        }
    }

    /// An unread stream must neither grow without bound nor block other streams.
    @Test func unreadStreamDoesNotStopTheOthers() async throws {
        let large = Data(repeating: 7, count: 40 << 20)
        try server.write(large, to: "large")
        try server.write(Data("small".utf8), to: "small")
        let origin = origin()
        let unread = try await origin.fetch(OriginRequest(url: server.baseURL + "/large"))
        for _ in 0..<50 { #expect(try await text(origin, "/small") == "small") }
        var received = 0
        for try await chunk in unread.body { received += chunk.count }
        #expect(received == large.count)
    }

    @Test func droppedStreamLeavesItsConnectionUsable() async throws {
        try server.write(Data(repeating: 7, count: 8 << 20), to: "large")
        let origin = origin()
        for _ in 0..<20 {
            _ = try await origin.fetch(OriginRequest(url: server.baseURL + "/large"))
            #expect(try await text(origin, "/protocol") == "HTTP/2.0")
        }
    }

    /// Thirty responses that do not end share two connections with the one that does.
    @Test func connectionsOfHTTP2CarryMoreRequestsThanThereMayBeConnections() async throws {
        let verification = CurlConfiguration.Verification.authorities(file: server.authorityFile)
        let origin = CurlOrigin(
            configuration: .init(
                verification: verification,
                connections: .init(maximumPerHost: 2)
            )
        )
        let url = server.baseURL + "/hang"
        let bodies = try await withThrowingTaskGroup(of: BodyStream.self) { group in
            for _ in 0..<30 {
                group.addTask { try await origin.fetch(OriginRequest(url: url)).body }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(bodies.count == 30)
        #expect(try await text(origin, "/protocol") == "HTTP/2.0")
    }
}
