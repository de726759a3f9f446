import CacheEngine
import CacheTestSupport
import CurlOrigin
import Foundation
import Testing

/// Many exchanges, in a process of their own so that its descriptors and memory can be counted.
@Suite(.serialized, .timeLimit(.minutes(5))) struct CurlOriginEnduranceTests {
    @Test func tenThousandFetchesOneByOneLeakNothing() async {
        let result = await #expect(
            processExitsWith: .success,
            observing: [\.standardOutputContent]
        ) {
            let server = try LoopbackServer { request, connection in
                connection.respond(body: request.target)
            }
            let origin = CurlOrigin()
            try await Self.fetch(1000, one: origin, from: server)
            let before = try ProcessUse.now()
            let clock = ContinuousClock()
            let start = clock.now
            try await Self.fetch(10_000, one: origin, from: server)
            let after = try ProcessUse.now(descriptorsMax: before.descriptors)
            print(
                "10,000 fetches one by one: \(clock.now - start), \(before) before, \(after) after"
            )
            #expect(after.descriptors == before.descriptors)
            #expect(after.residentBytes - before.residentBytes < 8 << 20)
            #expect(server.requestCount == 11_000)
            #expect(server.connectionCount == 1)
        }
        Self.show(result)
    }

    @Test func thousandFetchesAtOnceLeakNothing() async {
        let result = await #expect(
            processExitsWith: .success,
            observing: [\.standardOutputContent]
        ) {
            ProcessUse.raiseDescriptorLimit()
            let rounds = 4
            var uses = [try ProcessUse.now()]
            for _ in 0..<rounds {
                try await Self.fetchThousandAtOnce()
                uses.append(try ProcessUse.now(descriptorsMax: uses[0].descriptors))
            }
            print("1,000 fetches at once, after each round: \(uses)")
            #expect(uses[rounds].descriptors == uses[0].descriptors)
            // The first round pays for pools and stacks once.
            #expect(uses[rounds].residentBytes - uses[1].residentBytes < 24 << 20)
        }
        Self.show(result)
    }

    /// Dropped bodies, failed and cancelled fetches, streamed content, broken connections.
    @Test func abandonedFetchesLeakNothing() async {
        let result = await #expect(
            processExitsWith: .success,
            observing: [\.standardOutputContent]
        ) {
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
            let origin = CurlOrigin()
            try await Self.abandon(100, origin, server)
            let before = try ProcessUse.now()
            try await Self.abandon(300, origin, server)
            let after = try ProcessUse.now(descriptorsMax: before.descriptors)
            print("1,500 abandoned fetches: \(before) before, \(after) after")
            #expect(after.descriptors <= before.descriptors)
            #expect(after.residentBytes - before.residentBytes < 16 << 20)
        }
        Self.show(result)
    }

    /// The figures the child printed.
    private static func show(_ result: ExitTest.Result?) {
        let output = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self)
        for line in output.split(separator: "\n") where line.contains("descriptors") { print(line) }
    }

    private static func fetch(
        _ count: Int,
        one origin: CurlOrigin,
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

    /// No answer leaves before the thousandth request is there.
    private static func fetchThousandAtOnce() async throws {
        let gate = LoopbackGate()
        let count = 1000
        let counter = RequestCounter()
        let server = try LoopbackServer { request, connection in
            if counter.next() == count { gate.open() }
            gate.wait()
            connection.respond(body: request.target)
        }
        let connections = CurlConfiguration.Connections(perHostMax: count, totalMax: count)
        let origin = CurlOrigin(configuration: .init(connections: connections))
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
        _ origin: CurlOrigin,
        _ server: LoopbackServer
    ) async throws {
        let url = server.baseURL
        for _ in 0..<count {
            _ = try await origin.fetch(OriginRequest(url: url + "/dropped"))
            _ = try? await origin.fetch(OriginRequest(url: url + "/close"))
            _ = try? await origin.fetch(OriginRequest(url: url + "/cut")).body.collect()
            _ = try? await origin.fetch(OriginRequest(url: url + "/hang", timeoutSeconds: 0.0005))
            let content = BodyStream(ByteChunk([UInt8](repeating: 2, count: 100_000)))
            let put = OriginRequest(method: .put, url: url + "/put", body: content)
            _ = try? await origin.fetch(put).body.collect()
        }
        // What was dropped last is closed by the time a later exchange is over.
        for _ in 0..<100 {
            _ = try await origin.fetch(OriginRequest(url: url + "/x")).body.collect()
        }
    }
}
