import CacheEngine
import CacheProxy
import CacheTestSupport
import CurlOrigin
import Foundation
import Testing

/// Many exchanges, in a child process so that its descriptors and memory can be counted.
@Suite(.serialized, .timeLimit(.minutes(5))) struct CurlOriginEnduranceTests {
    @Test func tenThousandFetchesOneByOneLeakNothing() async {
        let curl = await #expect(
            processExitsWith: .success,
            observing: [\.standardOutputContent]
        ) { try await Self.fetchOneByOne(OriginKind.curl.make()) }
        let plain = await #expect(
            processExitsWith: .success,
            observing: [\.standardOutputContent]
        ) { try await Self.fetchOneByOne(OriginKind.plain.make()) }
        Self.show(curl, plain)
    }

    @Test func thousandFetchesAtOnceLeakNothing() async {
        let curl = await #expect(
            processExitsWith: .success,
            observing: [\.standardOutputContent]
        ) { try await Self.fetchAtOnce(.curl) }
        let plain = await #expect(
            processExitsWith: .success,
            observing: [\.standardOutputContent]
        ) { try await Self.fetchAtOnce(.plain) }
        Self.show(curl, plain)
    }

    /// Dropped bodies, failed and cancelled fetches, streamed content, broken connections.
    @Test func abandonedFetchesLeakNothing() async {
        let curl = await #expect(
            processExitsWith: .success,
            observing: [\.standardOutputContent]
        ) { try await Self.abandonMany(300, OriginKind.curl.make()) }
        // The plain client checks time limits four times a second, so each one takes longer.
        let plain = await #expect(
            processExitsWith: .success,
            observing: [\.standardOutputContent]
        ) { try await Self.abandonMany(60, OriginKind.plain.make()) }
        Self.show(curl, plain)
    }

    private static func fetchOneByOne(_ origin: any ConnectingOrigin) async throws {
        let server = try LoopbackServer { request, connection in
            connection.respond(body: request.target)
        }
        try await fetch(1000, one: origin, from: server)
        let before = try ProcessUse.now()
        let clock = ContinuousClock()
        let start = clock.now
        try await fetch(10_000, one: origin, from: server)
        let after = try ProcessUse.now(descriptorsMax: before.descriptors)
        print("10,000 fetches one by one: \(clock.now - start), \(before) before, \(after) after")
        #expect(after.descriptors == before.descriptors)
        #expect(after.residentBytes - before.residentBytes < 8 << 20)
        #expect(server.requestCount == 11_000)
        #expect(server.connectionCount == 1)
    }

    private static func fetchAtOnce(_ kind: OriginKind) async throws {
        ProcessUse.raiseDescriptorLimit()
        let rounds = 4
        var uses = [try ProcessUse.now()]
        for _ in 0..<rounds {
            try await fetchThousandAtOnce(kind)
            uses.append(try ProcessUse.now(descriptorsMax: uses[0].descriptors))
        }
        print("1,000 fetches at once, after each round: \(uses)")
        #expect(uses[rounds].descriptors == uses[0].descriptors)
        // The first round allocates pools and stacks once.
        #expect(uses[rounds].residentBytes - uses[1].residentBytes < 24 << 20)
    }

    private static func abandonMany(
        _ count: Int,
        _ origin: any ConnectingOrigin
    ) async throws {
        let server = try LoopbackServer { request, connection in
            switch request.target {
            case "/close": connection.close()
            case "/cut":
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
                connection.close()
            case "/hang": connection.waitForClose()
            default: connection.respond(bytes: [UInt8](repeating: 1, count: 300_000))
            }
        }
        try await abandon(count / 3, origin, server)
        let before = try ProcessUse.now()
        try await abandon(count, origin, server)
        let after = try ProcessUse.now(descriptorsMax: before.descriptors)
        print("\(count * 5) abandoned fetches: \(before) before, \(after) after")
        #expect(after.descriptors <= before.descriptors)
        #expect(after.residentBytes - before.residentBytes < 16 << 20)
    }

    /// Prints the counts that the child printed.
    private static func show(_ results: ExitTest.Result?...) {
        for result in results {
            let output = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self)
            for line in output.split(separator: "\n") where line.contains("descriptors") {
                print(line)
            }
        }
    }

    private static func fetch(
        _ count: Int,
        one origin: any ConnectingOrigin,
        from server: LoopbackServer
    ) async throws {
        for number in 0..<count {
            let response = try await origin.fetch(OriginRequest(url: "\(server.baseURL)/\(number)"))
            let body = try await response.body.collect()
            guard body == ByteChunk("/\(number)") else {
                Issue.record("Fetch \(number) got \(body.text)")
                return
            }
        }
    }

    /// No response is sent before the thousandth request has arrived.
    private static func fetchThousandAtOnce(_ kind: OriginKind) async throws {
        let gate = LoopbackGate()
        let count = 1000
        let counter = RequestCounter()
        let server = try LoopbackServer { request, connection in
            if counter.next() == count { gate.open() }
            gate.wait()
            connection.respond(body: request.target)
        }
        let connections = CurlConfiguration.Connections(maximumPerHost: count, maximumTotal: count)
        let origin = kind.make(.init(connections: connections))
        let baseURL = server.baseURL
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<count {
                group.addTask {
                    let request = OriginRequest(url: "\(baseURL)/\(number)")
                    return try await origin.fetch(request).body.collect().text == "/\(number)"
                }
            }
            for try await isRight in group { #expect(isRight) }
        }
        #expect(server.requestCount == count)
        #expect(server.connectionCount == count)
        server.stop()
    }

    private static func abandon(
        _ count: Int,
        _ origin: any ConnectingOrigin,
        _ server: LoopbackServer
    ) async throws {
        let url = server.baseURL
        for _ in 0..<count {
            _ = try await origin.fetch(OriginRequest(url: url + "/dropped"))
            _ = try? await origin.fetch(OriginRequest(url: url + "/close"))
            _ = try? await origin.fetch(OriginRequest(url: url + "/cut")).body.collect()
            _ = try? await origin.fetch(
                OriginRequest(url: url + "/hang", timeout: .seconds(0.0005))
            )
            let content = BodyStream(ByteChunk([UInt8](repeating: 2, count: 100_000)))
            let put = OriginRequest(method: .put, url: url + "/put", body: content)
            _ = try? await origin.fetch(put).body.collect()
        }
        // The last dropped exchanges are closed before a later exchange ends.
        for _ in 0..<100 {
            _ = try await origin.fetch(OriginRequest(url: url + "/x")).body.collect()
        }
    }
}
