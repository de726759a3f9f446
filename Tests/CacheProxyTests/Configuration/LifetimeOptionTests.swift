import CacheEngine
import Testing

@testable import CacheProxy

/// The times of responses that state none, and of stale ones if the origin fails.
@Suite struct LifetimeOptionTests {
    // MARK: --lifetime

    /// An exchange that takes place twice, and how often the origin takes part.
    struct Row: Sendable {
        var lifetimes: String?
        var others: [String] = []
        var status = 200
        var fields: [String] = []
        var sent: [String] = []
        var asked: Int

        var options: [String] { (lifetimes.map { ["--lifetime", $0] } ?? []) + others }
    }

    static let rows: [Row] = stating + personal + statuses

    /// What the response states.
    private static let stating: [Row] = [
        .init(asked: 2), .init(lifetimes: "200=60", asked: 1), .init(lifetimes: "404=60", asked: 2),
        .init(lifetimes: "200=60", fields: ["Cache-Control: max-age=0"], asked: 2),
        .init(lifetimes: "200=60", fields: ["Cache-Control: s-maxage=0"], asked: 2),
        .init(lifetimes: "200=60", fields: ["CDN-Cache-Control: max-age=0"], asked: 2),
        .init(lifetimes: "200=60", fields: ["Expires: 0"], asked: 2),
        .init(lifetimes: "200=60", fields: ["Cache-Control: no-store"], asked: 2),
        .init(lifetimes: "200=60", fields: ["Cache-Control: private"], asked: 2),
        .init(lifetimes: "200=60", fields: ["Cache-Control: no-cache", "ETag: \"a\""], asked: 2),
        .init(lifetimes: "200=60", fields: ["Vary: *"], asked: 2),
        .init(lifetimes: "200=60", fields: ["Pragma: no-cache"], asked: 1),
        .init(lifetimes: "200=0", fields: ["Cache-Control: max-age=60"], asked: 1),
        .init(fields: ["Last-Modified: Mon, 01 Jan 2001 00:00:00 GMT"], asked: 1),
        .init(
            lifetimes: "200=0",
            fields: ["Last-Modified: Mon, 01 Jan 2001 00:00:00 GMT"],
            asked: 2
        ),
    ]

    /// A setting of the proxy does not say that others may get the response.
    private static let personal: [Row] = [
        .init(lifetimes: "200=60", fields: ["Set-Cookie: a=b"], asked: 2),
        .init(
            lifetimes: "200=60",
            others: ["--set-cookie", "store"],
            fields: ["Set-Cookie: a=b"],
            asked: 2
        ),
        .init(
            lifetimes: "200=60",
            others: ["--set-cookie", "strip"],
            fields: ["Set-Cookie: a=b"],
            asked: 1
        ),
        .init(lifetimes: "200=60", sent: ["Cookie: a=b"], asked: 2),
        .init(
            lifetimes: "200=60",
            fields: ["Cache-Control: public"],
            sent: ["Cookie: a=b"],
            asked: 1
        ),
        .init(lifetimes: "200=60", sent: ["Authorization: Basic YTpi"], asked: 2),
        .init(
            lifetimes: "200=60",
            fields: ["Cache-Control: public"],
            sent: ["Authorization: Basic YTpi"],
            asked: 1
        ),
        .init(
            lifetimes: "200=60",
            others: ["--mode", "private"],
            fields: ["Set-Cookie: a=b"],
            sent: ["Cookie: a=b"],
            asked: 1
        ),
    ]

    private static let statuses: [Row] = [
        .init(status: 404, asked: 2), .init(lifetimes: "404=60", status: 404, asked: 1),
        .init(status: 302, fields: ["Location: /b"], asked: 2),
        .init(lifetimes: "302=60", status: 302, fields: ["Location: /b"], asked: 1),
        .init(lifetimes: "200=60", status: 503, asked: 2),
        .init(lifetimes: "200=60,503=60", status: 503, asked: 1),
        .init(lifetimes: "403=60", status: 403, asked: 1),
        .init(lifetimes: "503=0", status: 503, asked: 2),
        .init(
            lifetimes: "200=60,206=60",
            status: 206,
            fields: ["Content-Range: bytes 0-1/4", "ETag: \"a\""],
            sent: ["Range: bytes=0-1"],
            asked: 1
        ),
    ]

    @Test(arguments: rows)
    func responseWithoutALifetimeGetsTheOneOfItsStatus(_ row: Row) async throws {
        let script: WireOrigin.Script = { _, socket in
            try socket.answer(row.status, row.fields, "ok")
        }
        try await OptionTests.withOptions(row.options, script) { proxy, origin async throws in
            for _ in 0..<2 {
                let response = try await proxy.request("/", row.sent)
                #expect(response.status == row.status && response.text == "ok")
            }
            #expect(origin.count == row.asked)
        }
    }

    @Test func lifetimeOfAStatusEnds() async throws {
        let script: WireOrigin.Script = { _, socket in try socket.answer(404, [], "no") }
        let options = ["--lifetime", "200=60,404=10"]
        try await OptionTests.withOptions(options, script) { proxy, origin async throws in
            _ = try await proxy.request("/")
            proxy.advance(9)
            #expect(try await proxy.request("/").isHit)
            proxy.advance(2)
            #expect(try await !proxy.request("/").isHit)
            #expect(origin.count == 2)
        }
    }

    @Test func listOfLifetimesMayHaveSpacesInAFile() throws {
        for line in [
            "lifetime 200=60, 404=10", "lifetime = 200=60 ,404=10", "lifetime=200=60,404=10",
        ] {
            let path = try ConfigurationReaderTests.file("\(line)\n")
            defer { ConfigurationReaderTests.remove(path) }
            let read = try OptionTests.read(["--config", path])
            #expect(read.lifetimes == [200: .seconds(60), 404: .seconds(10)])
        }
    }

    // MARK: --stale-on-failure

    struct Failure: Sendable {
        var options: [String] = []
        /// Seconds after the end of the lifetime.
        var staleness: Int64
        var isServed: Bool
    }

    static let failures: [Failure] = [
        .init(staleness: 86_000, isServed: true), .init(staleness: 87_000, isServed: false),
        .init(options: ["--stale-on-failure", "30"], staleness: 29, isServed: true),
        .init(options: ["--stale-on-failure", "30"], staleness: 30, isServed: false),
        .init(options: ["--stale-on-failure", "0"], staleness: 1, isServed: false),
        .init(options: ["--stale-on-failure", "172800"], staleness: 170_000, isServed: true),
    ]

    @Test(arguments: failures)
    func staleResponseStandsInForNone(_ row: Failure) async throws {
        try await OptionTests.withOptions(row.options, Self.failing) { proxy, _ async throws in
            _ = try await proxy.request("/")
            proxy.advance(1 + row.staleness)
            let response = try await proxy.request("/")
            #expect(response.status == (row.isServed ? 200 : 502))
        }
    }

    /// Answers once; afterwards each connection ends without a response.
    private static let failing: WireOrigin.Script = { request, socket in
        if request.number > 0 { return .end }
        return try socket.answer(200, ["Cache-Control: max-age=1"], "good")
    }

    /// `--grace` is the time of the refresh, whatever becomes of it.
    @Test func graceIsAnotherTime() async throws {
        let options = ["--grace", "30", "--stale-on-failure", "0"]
        try await OptionTests.withOptions(options, Self.failing) { proxy, _ async throws in
            _ = try await proxy.request("/")
            proxy.advance(21)
            #expect(try await proxy.request("/").text == "good")
            await proxy.service.cache.waitUntilIdle()
            proxy.advance(20)
            #expect(try await proxy.request("/").status == 502)
        }
    }

    @Test func errorOfTheOriginIsAResponse() async throws {
        let script: WireOrigin.Script = { request, socket in
            if request.number > 0 { return try socket.answer(503, [], "down") }
            return try socket.answer(200, ["Cache-Control: max-age=1"], "good")
        }
        let options = ["--stale-on-failure", "60"]
        try await OptionTests.withOptions(options, script) { proxy, _ async throws in
            _ = try await proxy.request("/")
            proxy.advance(10)
            #expect(try await proxy.request("/").status == 503)
        }
    }
}
