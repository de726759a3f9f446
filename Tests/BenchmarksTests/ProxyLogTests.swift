import Benchmarks
import CacheEngine
import Foundation
import Testing

@testable import CacheProxy

/// The log of cache-proxy, as it writes it.
@Suite struct ProxyLogTests {
    private static func logged(
        host: String,
        target: String = "/a",
        agent: String = "curl/8 (x; y)",
        source: CacheInfo.Source? = .fresh,
        bytes: Int? = 5
    ) -> String {
        let line = AccessLogLine(
            client: "192.0.2.1",
            requestLine: Array("GET \(target) HTTP/1.1".utf8),
            referer: [],
            agent: Array(agent.utf8),
            host: Array(host.utf8),
            startedNanoseconds: 0
        )
        line.status = 200
        line.bodyBytes = bytes
        line.source = source
        let out = OutputBuffer(capacity: 1 << 10)
        line.write(nowSeconds: 1_700_000_000, nowNanoseconds: 1_500_000, to: out)
        return String(decoding: out.bytes, as: UTF8.self)
    }

    private static func shape(_ lines: [String]) throws -> [[Int]] {
        TraceTests.shape(try TraceTests.read("access.log", Data(lines.joined().utf8)))
    }

    @Test func onePathOfTwoHostsIsTwoObjects() throws {
        let lines = ["a.example", "b.example", "A.Example", "b.example:8080"].map {
            Self.logged(host: $0)
        }
        #expect(try Self.shape(lines) == [[0, 5], [1, 5], [0, 5], [2, 5]])
    }

    @Test func everySourceAndAgentLeavesTheHost() throws {
        var sources: [CacheInfo.Source?] = [nil]
        for source in CacheInfo.Source.allCases { sources.append(source) }
        for source in sources {
            for agent in ["", "x", "a b c d"] {
                let lines = ["a", "b", "a"].map {
                    Self.logged(host: $0, agent: agent, source: source)
                }
                #expect(try Self.shape(lines) == [[0, 5], [1, 5], [0, 5]])
            }
        }
    }

    @Test func lineWithoutAHostHasItsTargetAlone() throws {
        let lines = ["", ""].map { Self.logged(host: $0) }
        #expect(try Self.shape(lines) == [[0, 5], [0, 5]])
    }

    @Test func wholeURLNamesItsOwnHost() throws {
        let lines = ["a", "b"].map { Self.logged(host: $0, target: "http://c/x") }
        #expect(try Self.shape(lines) == [[0, 5], [0, 5]])
    }

    @Test func bodyOfUnknownLengthIsCounted() throws {
        let text = Self.logged(host: "a", bytes: nil) + Self.logged(host: "a")
        let trace = try TraceTests.read("access.log", Data(text.utf8))
        #expect(trace.requestsWithoutSize == 1)
        #expect(TraceTests.shape(trace) == [[0, 0], [0, 5]])
    }
}
