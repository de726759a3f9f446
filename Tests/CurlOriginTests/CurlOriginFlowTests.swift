import CacheEngine
import CacheProxy
import CacheTestSupport
import CurlOrigin
import Synchronization
import Testing

/// Time limits, cancellation and back-pressure of each origin client.
@Suite(.timeLimit(.minutes(1))) struct CurlOriginFlowTests {
    /// More than the socket buffers of both sides, and much less than a fast origin sends.
    private static let bufferedBytesMax = 24 << 20

    /// An origin with an endless body at full speed; other paths are answered at once.
    private struct EndlessServer {
        let server: LoopbackServer
        let sentBytes: Counter
        /// Yields when a reader has broken off the endless body.
        let breaks: AsyncStream<Void>

        final class Counter: Sendable {
            private let bytes = Atomic(0)
            var value: Int { bytes.load(ordering: .relaxed) }
            func add(_ count: Int) { bytes.add(count, ordering: .relaxed) }
        }

        init() throws {
            let counter = Counter()
            let (breaks, continuation) = AsyncStream<Void>.makeStream()
            let part = [UInt8](repeating: 7, count: 1 << 16)
            sentBytes = counter
            self.breaks = breaks
            server = try LoopbackServer { request, connection in
                guard request.target == "/endless" else { return connection.respond(body: "x") }
                connection.send("HTTP/1.1 200 OK\r\n\r\n")
                while connection.send(part) { counter.add(part.count) }
                continuation.yield()
            }
        }

        var request: OriginRequest { OriginRequest(url: server.baseURL + "/endless") }

        /// Lets time pass by other requests to the same origin.
        func passTime(with origin: any ConnectingOrigin, seconds: Double) async throws {
            let clock = ContinuousClock()
            let end = clock.now + .seconds(seconds)
            for _ in 0..<1_000_000 where clock.now < end {
                let other = OriginRequest(url: server.baseURL + "/")
                _ = try await origin.fetch(other).body.collect()
            }
        }
    }

    private func code(_ body: () async throws -> Void) async -> CacheError.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? CacheError)?.code
        }
    }

    // MARK: - Back-pressure

    @Test(arguments: OriginKind.allCases)
    func slowReaderBoundsWhatIsRead(kind: OriginKind) async throws {
        let endless = try EndlessServer()
        let origin = kind.make()
        let response = try await origin.fetch(endless.request)
        try await endless.passTime(with: origin, seconds: 0.3)
        #expect(endless.sentBytes.value < Self.bufferedBytesMax)
        var iterator = response.body.makeAsyncIterator()
        var received = 0
        while received < 100 << 20 {
            let chunk = try #require(try await iterator.next())
            received += chunk.count
            #expect(chunk.withUnsafeBytes { $0.allSatisfy { $0 == 7 } })
        }
        #expect(endless.sentBytes.value - received < Self.bufferedBytesMax)
    }

    @Test(arguments: OriginKind.allCases)
    func readerThatTakesItsTimeIsNotASilentOrigin(kind: OriginKind) async throws {
        let endless = try EndlessServer()
        let deadlines = CurlConfiguration.Deadlines(idle: .seconds(1))
        let origin = kind.make(.init(deadlines: deadlines))
        let response = try await origin.fetch(endless.request)
        try await endless.passTime(with: origin, seconds: 2.5)
        var iterator = response.body.makeAsyncIterator()
        for _ in 0..<200 { #expect(try await iterator.next() != nil) }
    }

    // MARK: - Cancellation

    @Test(arguments: OriginKind.allCases)
    func droppedBodyClosesTheExchange(kind: OriginKind) async throws {
        let endless = try EndlessServer()
        let origin = kind.make()
        var response: OriginResponse? = try await origin.fetch(endless.request)
        #expect(response?.status == 200)
        response = nil
        for await _ in endless.breaks { break }
    }

    @Test(arguments: OriginKind.allCases)
    func cancelledReaderClosesTheExchange(kind: OriginKind) async throws {
        let endless = try EndlessServer()
        let origin = kind.make()
        let request = endless.request
        let reader = Task {
            for try await _ in try await origin.fetch(request).body {}
        }
        while endless.sentBytes.value == 0 { await Task.yield() }
        reader.cancel()
        for await _ in endless.breaks { break }
        await #expect(throws: CancellationError.self) { try await reader.value }
    }

    @Test(arguments: OriginKind.allCases)
    func cancelledFetchClosesTheConnection(kind: OriginKind) async throws {
        let (events, continuation) = AsyncStream<String>.makeStream()
        let server = try LoopbackServer { _, connection in
            continuation.yield("asked")
            connection.waitForClose()
            continuation.yield("closed")
        }
        let origin = kind.make()
        let url = server.baseURL
        let fetch = Task { try await origin.fetch(OriginRequest(url: url)) }
        var iterator = events.makeAsyncIterator()
        #expect(await iterator.next() == "asked")
        fetch.cancel()
        #expect(await iterator.next() == "closed")
        await #expect(throws: CancellationError.self) { _ = try await fetch.value }
    }

    @Test(arguments: OriginKind.allCases)
    func fetchOfACancelledTaskIsNotSent(kind: OriginKind) async throws {
        let server = try LoopbackServer { _, connection in connection.respond() }
        let origin = kind.make()
        let url = server.baseURL
        let fetch = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await origin.fetch(OriginRequest(url: url))
        }
        await #expect(throws: CancellationError.self) { _ = try await fetch.value }
        #expect(server.requestCount == 0)
    }

    @Test(arguments: OriginKind.allCases)
    func secondReaderGetsAnErrorAndNoTrap(kind: OriginKind) async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
            gate.wait()
            connection.send("done")
        }
        let response = try await kind.make().fetch(OriginRequest(url: server.baseURL))
        let outcomes = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<2 {
                group.addTask { (try? await response.body.collect()) != nil }
            }
            // One of the two reads is refused before the other one can end.
            let first = await group.next() ?? true
            gate.open()
            return [first, await group.next() ?? false]
        }
        #expect(outcomes == [false, true])
    }

    // MARK: - Deadlines

    @Test(arguments: OriginKind.allCases)
    func silentOriginTimesOut(kind: OriginKind) async throws {
        let server = try LoopbackServer { _, connection in connection.waitForClose() }
        let origin = kind.make()
        let request = OriginRequest(url: server.baseURL, timeout: .seconds(0.05))
        #expect(await code { _ = try await origin.fetch(request) } == .originTimedOut)
        let deadlines = CurlConfiguration.Deadlines(head: .seconds(0.05))
        let impatient = kind.make(.init(deadlines: deadlines))
        let plain = OriginRequest(url: server.baseURL)
        #expect(await code { _ = try await impatient.fetch(plain) } == .originTimedOut)
    }

    @Test(arguments: OriginKind.allCases)
    func bodyThatStopsTimesOut(kind: OriginKind) async throws {
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            connection.waitForClose()
        }
        let deadlines = CurlConfiguration.Deadlines(idle: .seconds(0.05))
        let origin = kind.make(.init(deadlines: deadlines))
        let response = try await origin.fetch(OriginRequest(url: server.baseURL))
        #expect(await code { _ = try await response.body.collect() } == .originTimedOut)
    }

    @Test(arguments: OriginKind.allCases)
    func exchangeThatNeverEndsTimesOut(kind: OriginKind) async throws {
        let endless = try EndlessServer()
        let deadlines = CurlConfiguration.Deadlines(total: .seconds(0.1))
        let origin = kind.make(.init(deadlines: deadlines))
        let code = await code {
            for try await _ in try await origin.fetch(endless.request).body {}
        }
        #expect(code == .originTimedOut)
        for await _ in endless.breaks { break }
    }

    @Test func handshakeThatNeverEndsTimesOut() async throws {
        let server = try LoopbackServer { _, connection in connection.waitForClose() }
        let deadlines = CurlConfiguration.Deadlines(connect: .seconds(0.05))
        let origin = CurlOrigin(configuration: .init(deadlines: deadlines))
        let request = OriginRequest(url: "https://127.0.0.1:\(server.port)/")
        #expect(await code { _ = try await origin.fetch(request) } == .originUnreachable)
    }
}
