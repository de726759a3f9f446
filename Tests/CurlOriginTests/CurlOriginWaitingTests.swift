import CacheEngine
import CacheProxy
import CacheTestSupport
import CurlOrigin
import Platform
import Testing

/// Requests that wait for a connection, to their origin or to another one.
@Suite(.timeLimit(.minutes(5))) struct CurlOriginWaitingTests {
    /// A server that responds to no request before the gate is open.
    private func server(behind gate: LoopbackGate) throws -> LoopbackServer {
        try LoopbackServer { request, connection in
            gate.wait()
            connection.respond(body: request.target)
        }
    }

    private func code(of error: any Error) -> CacheError.Code? { (error as? CacheError)?.code }

    /// Each request has its own attempt, so none waits for those of the others.
    @Test func silentOriginFailsAllItsRequestsAtOnce() async throws {
        let (listener, port) = try LoopbackSocket.listen()
        defer { close(listener) }
        let origin = CurlOrigin(configuration: .init(deadlines: .init(connect: .seconds(1))))
        let start = ContinuousClock.now
        let codes = await withTaskGroup(of: CacheError.Code?.self) { group in
            for number in 0..<12 {
                group.addTask {
                    do {
                        let url = "https://127.0.0.1:\(port)/\(number)"
                        _ = try await origin.fetch(OriginRequest(url: url))
                        return nil
                    } catch {
                        return code(of: error)
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes == Array(repeating: .originUnreachable, count: 12))
        #expect(ContinuousClock.now - start < .seconds(8))
    }

    /// One host's requests that wait must not take the places of another host's.
    @Test(arguments: OriginKind.allCases)
    func requestsOfABusyHostDoNotHoldUpAnother(kind: OriginKind) async throws {
        let gate = LoopbackGate()
        let busy = try server(behind: gate)
        let idle = try LoopbackServer { request, connection in
            if request.target == "/held" { connection.waitForClose() }
            connection.respond(body: request.target)
        }
        let origin = kind.make(.init(connections: .init(maximumPerHost: 1)))
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<20 {
                group.addTask {
                    let request = OriginRequest(url: "\(busy.baseURL)/\(number)")
                    return try await origin.fetch(request).body.collect().text == "/\(number)"
                }
            }
            #expect(await eventually { busy.connectionCount == 1 })
            for _ in 0..<10 {
                let held = Task {
                    _ = try await origin.fetch(OriginRequest(url: idle.baseURL + "/held"))
                }
                #expect(await eventually { idle.requests.last?.target == "/held" })
                let second = Task {
                    let request = OriginRequest(url: idle.baseURL + "/second")
                    return try await origin.fetch(request).body.collect().text
                }
                await pause(milliseconds: 20)
                held.cancel()
                #expect(try await second.value == "/second")
            }
            #expect(busy.requestCount <= 1)
            gate.open()
            for try await isRight in group { #expect(isRight) }
        }
    }

    /// A wait for a free connection says nothing about the origin.
    ///
    /// Only the order of the limits matters: two seconds to connect, three for a hasty request.
    @Test(arguments: OriginKind.allCases)
    func waitForAConnectionIsNoFailureToConnect(kind: OriginKind) async throws {
        let gate = LoopbackGate()
        let server = try server(behind: gate)
        let deadlines = CurlConfiguration.Deadlines(connect: .seconds(2), head: .seconds(60))
        let origin = kind.make(
            .init(deadlines: deadlines, connections: .init(maximumPerHost: 1))
        )
        let first = Task {
            try await origin.fetch(OriginRequest(url: server.baseURL + "/1")).body.collect().text
        }
        #expect(await eventually { server.connectionCount == 1 })
        let patient = Task {
            try await origin.fetch(OriginRequest(url: server.baseURL + "/3")).body.collect().text
        }
        let hasty = OriginRequest(url: server.baseURL + "/2", timeout: .seconds(3))
        await #expect { _ = try await origin.fetch(hasty) } throws: {
            code(of: $0) == .deadlineExceeded
        }
        gate.open()
        #expect(try await first.value == "/1")
        #expect(try await patient.value == "/3")
    }
}
