import CacheEngine
import CacheTestSupport
import CurlOrigin
import Synchronization
import Testing

/// Time, cancellation and back-pressure.
@Suite(.timeLimit(.minutes(1))) struct CurlOriginFlowTests {
    /// More than the socket buffers of both sides hold, and much less than a fast origin sends.
    private static let bufferedBytesMax = 24 << 20

    /// An origin whose body never ends, at full speed; other paths answer at once.
    private struct EndlessServer {
        let server: LoopbackServer
        let sentBytes: Counter
        /// Yields when the endless body was broken off by its reader.
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

        /// Passes time by doing something else with the same origin.
        func passTime(with origin: CurlOrigin, seconds: Double) async throws {
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

    @Test func slowReaderBoundsWhatIsRead() async throws {
        let endless = try EndlessServer()
        let origin = CurlOrigin()
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

    @Test func readerThatTakesItsTimeIsNotASilentOrigin() async throws {
        let endless = try EndlessServer()
        let deadlines = CurlConfiguration.Deadlines(idleSeconds: 0.1)
        let origin = CurlOrigin(configuration: .init(deadlines: deadlines))
        let response = try await origin.fetch(endless.request)
        try await endless.passTime(with: origin, seconds: 0.3)
        var iterator = response.body.makeAsyncIterator()
        for _ in 0..<200 { #expect(try await iterator.next() != nil) }
    }

    // MARK: - Cancellation

    @Test func droppedBodyClosesTheExchange() async throws {
        let endless = try EndlessServer()
        let origin = CurlOrigin()
        var response: OriginResponse? = try await origin.fetch(endless.request)
        #expect(response?.status == 200)
        response = nil
        for await _ in endless.breaks { break }
    }

    @Test func cancelledReaderClosesTheExchange() async throws {
        let endless = try EndlessServer()
        let origin = CurlOrigin()
        let request = endless.request
        let reader = Task {
            for try await _ in try await origin.fetch(request).body {}
        }
        while endless.sentBytes.value == 0 { await Task.yield() }
        reader.cancel()
        for await _ in endless.breaks { break }
        await #expect(throws: CancellationError.self) { try await reader.value }
    }

    @Test func cancelledFetchClosesTheConnection() async throws {
        let (events, continuation) = AsyncStream<String>.makeStream()
        let server = try LoopbackServer { _, connection in
            continuation.yield("asked")
            connection.waitForClose()
            continuation.yield("closed")
        }
        let origin = CurlOrigin()
        let url = server.baseURL
        let fetch = Task { try await origin.fetch(OriginRequest(url: url)) }
        var iterator = events.makeAsyncIterator()
        #expect(await iterator.next() == "asked")
        fetch.cancel()
        #expect(await iterator.next() == "closed")
        await #expect(throws: CancellationError.self) { _ = try await fetch.value }
    }

    @Test func fetchOfACancelledTaskIsNotSent() async throws {
        let server = try LoopbackServer { _, connection in connection.respond() }
        let origin = CurlOrigin()
        let url = server.baseURL
        let fetch = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await origin.fetch(OriginRequest(url: url))
        }
        await #expect(throws: CancellationError.self) { _ = try await fetch.value }
        #expect(server.requestCount == 0)
    }

    @Test func secondReaderGetsAnErrorAndNoTrap() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
            gate.wait()
            connection.send("done")
        }
        let response = try await CurlOrigin().fetch(OriginRequest(url: server.baseURL))
        let outcomes = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<2 {
                group.addTask { (try? await response.body.collect()) != nil }
            }
            // One of the two reads is refused before the other can end.
            let first = await group.next() ?? true
            gate.open()
            return [first, await group.next() ?? false]
        }
        #expect(outcomes == [false, true])
    }

    // MARK: - Deadlines

    @Test func silentOriginTimesOut() async throws {
        let server = try LoopbackServer { _, connection in connection.waitForClose() }
        let origin = CurlOrigin()
        let request = OriginRequest(url: server.baseURL, timeoutSeconds: 0.05)
        #expect(await code { _ = try await origin.fetch(request) } == .originTimedOut)
        let deadlines = CurlConfiguration.Deadlines(headSeconds: 0.05)
        let impatient = CurlOrigin(configuration: .init(deadlines: deadlines))
        let plain = OriginRequest(url: server.baseURL)
        #expect(await code { _ = try await impatient.fetch(plain) } == .originTimedOut)
    }

    @Test func bodyThatStopsTimesOut() async throws {
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            connection.waitForClose()
        }
        let deadlines = CurlConfiguration.Deadlines(idleSeconds: 0.05)
        let origin = CurlOrigin(configuration: .init(deadlines: deadlines))
        let response = try await origin.fetch(OriginRequest(url: server.baseURL))
        #expect(await code { _ = try await response.body.collect() } == .originTimedOut)
    }

    @Test func exchangeThatNeverEndsTimesOut() async throws {
        let endless = try EndlessServer()
        let deadlines = CurlConfiguration.Deadlines(totalSeconds: 0.1)
        let origin = CurlOrigin(configuration: .init(deadlines: deadlines))
        let response = try await origin.fetch(endless.request)
        #expect(await code { for try await _ in response.body {} } == .originTimedOut)
        for await _ in endless.breaks { break }
    }

    @Test func handshakeThatNeverEndsTimesOut() async throws {
        let server = try LoopbackServer { _, connection in connection.waitForClose() }
        let deadlines = CurlConfiguration.Deadlines(connectSeconds: 0.05)
        let origin = CurlOrigin(configuration: .init(deadlines: deadlines))
        let request = OriginRequest(url: "https://127.0.0.1:\(server.port)/")
        #expect(await code { _ = try await origin.fetch(request) } == .originTimedOut)
    }
}
