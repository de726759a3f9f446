import CacheEngine
import CacheTestSupport
import CurlOrigin
import Platform
import Synchronization
import Testing

@testable import CacheProxy

/// The exchanges of one event loop, turn by turn.
@Suite(.timeLimit(.minutes(1))) struct UpstreamTableTests {
    private func origin(
        perHost: Int = 1024,
        idle: Int = 256,
        _ deadlines: CurlConfiguration.Deadlines = .init()
    ) -> PlainOrigin {
        PlainOrigin(
            .init(
                deadlines: deadlines,
                connections: .init(maximumPerHost: perHost, maximumIdle: idle)
            )
        )
    }

    /// The next request must not get a response that its connection received before it.
    @Test func connectionThatSpokeUnaskedIsNotUsed() async throws {
        let gate = LoopbackGate()
        let (sent, didSend) = AsyncStream<Void>.makeStream()
        let server = try LoopbackServer { _, connection in
            connection.respond(body: "right")
            guard connection.number == 1 else { return }
            gate.wait()
            connection.respond(body: "wrong")
            didSend.yield()
        }
        let stepper = try UpstreamStepper()
        let origin = origin()
        let request = OriginRequest(url: server.baseURL)
        #expect(try await stepper.fetch(request, at: origin).text == "right")
        gate.open()
        for await _ in sent { break }
        #expect(try await stepper.fetch(request, at: origin).text == "right")
        #expect(server.connectionCount == 2)
    }

    @Test("chunks that one read brings are one piece, however small the origin makes them")
    func chunksOfOneReadAreOnePiece() async throws {
        let gate = LoopbackGate()
        defer { gate.open() }
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            gate.wait()
            connection.send((0..<900).map { "1\r\n\($0 % 10)\r\n" }.joined() + "0\r\n\r\n")
        }
        let stepper = try UpstreamStepper()
        let exchange = try stepper.start(OriginRequest(url: server.baseURL), at: origin())
        stepper.turn { stepper.table.connections.values.first?.machine.phase == .receiving }
        gate.open()
        stepper.turn { stepper.table.isIdle }
        var (pieces, text) = (0, "")
        let response = try await exchange.response(onInformational: nil)
        for try await piece in response.body {
            pieces += 1
            text += piece.text
        }
        #expect(text == (0..<900).map { "\($0 % 10)" }.joined())
        // One packet is one read, or a few.
        #expect(pieces <= 8)
    }

    @Test(arguments: [false, true])
    func idleConnectionThatTheOriginClosesIsNotUsed(isSeen: Bool) async throws {
        let server = try LoopbackServer { request, connection in
            connection.respond(body: request.method)
            connection.close()
        }
        let stepper = try UpstreamStepper()
        let origin = origin()
        for method in [HTTPMethod.get, .post, .head, .get] {
            let request = OriginRequest(method: method, url: server.baseURL)
            let exchange = try stepper.fetch(request, at: origin)
            #expect(try await exchange.text == (method == .head ? "" : method.name))
            if isSeen { stepper.turn { stepper.table.connections.isEmpty } }
        }
        #expect(server.requestCount == 4 && server.connectionCount == 4)
    }

    enum Unfinished: CaseIterable { case head, content }

    /// The socket takes only a part of the request before the response is there.
    @Test(arguments: Unfinished.allCases)
    func answerBeforeTheEndOfTheRequestEndsTheConnection(part: Unfinished) async throws {
        let gate = LoopbackGate()
        defer { gate.open() }
        let server = try LoopbackServer { request, connection in
            connection.respond(body: "whole")
            guard connection.number == 1 else { return }
            connection.waitForBytes()
            connection.respond(body: "early")
            gate.wait()
        }
        let stepper = try UpstreamStepper()
        let origin = origin()
        let short = OriginRequest(url: server.baseURL, timeout: .seconds(5))
        #expect(try await stepper.fetch(short, at: origin).text == "whole")
        var long = OriginRequest(method: .put, url: server.baseURL)
        let megabyte = String(repeating: "x", count: 1 << 20)
        switch part {
        case .head: long.fields = HeaderFields((0..<16).map { ("X-\($0)", megabyte) })
        case .content: long.body = BodyStream(ByteChunk([UInt8](repeating: 1, count: 16 << 20)))
        }
        #expect(try await stepper.fetch(long, at: origin).text == "early")
        #expect(stepper.table.connections.isEmpty)
        #expect(try await stepper.fetch(short, at: origin).text == "whole")
        #expect(server.connectionCount == 2)
    }

    /// The failed write takes the socket's error, so that the read after it finds a plain end.
    @Test func resetThatAWriteFindsDoesNotCompleteTheBody() async throws {
        let server = try LoopbackServer { _, connection in
            connection.respond(body: "whole")
            connection.waitForBytes()
            connection.send("HTTP/1.1 200 OK\r\n\r\npart")
            connection.reset()
        }
        let stepper = try UpstreamStepper()
        let origin = origin()
        _ = try stepper.fetch(OriginRequest(url: server.baseURL), at: origin)
        let put = OriginRequest(
            method: .put,
            url: server.baseURL,
            body: BodyStream(ByteChunk([UInt8](repeating: 1, count: 16 << 20)))
        )
        let exchange = try stepper.fetch(put, at: origin)
        await #expect(throws: CacheError.self) { try await exchange.text }
    }

    @Test func secondExchangeWaitsForThePermitOfTheFirst() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer { request, connection in
            if request.target == "/1" { gate.wait() }
            connection.respond(body: request.target)
        }
        let stepper = try UpstreamStepper()
        let origin = origin(perHost: 1)
        let exchanges = try (1...4).map {
            try stepper.start(OriginRequest(url: "\(server.baseURL)/\($0)"), at: origin)
        }
        stepper.turn { server.requestCount == 1 }
        // The third one leaves while it waits.
        stepper.table.take(.cancel(exchanges[2].id))
        gate.open()
        stepper.turn { stepper.table.isIdle }
        for number in [1, 2, 4] { #expect(try await exchanges[number - 1].text == "/\(number)") }
        await #expect(throws: CancellationError.self) { try await exchanges[2].text }
        #expect(server.connectionCount == 1)
        #expect(server.requests.map(\.target) == ["/1", "/2", "/4"])
    }

    @Test func exchangesThatGiveUpLeaveTheLine() async throws {
        let gate = LoopbackGate()
        defer { gate.open() }
        let server = try LoopbackServer { request, connection in
            if request.target == "/held" { gate.wait() }
            connection.respond(body: request.target)
        }
        let stepper = try UpstreamStepper()
        let origin = origin(perHost: 1)
        let held = try stepper.start(.init(url: server.baseURL + "/held"), at: origin)
        stepper.turn { server.requestCount == 1 }
        let waiting = try (0..<100).map { _ in
            try stepper.start(.init(url: server.baseURL + "/late"), at: origin)
        }
        #expect(origin.budget.waiterCount == 100)
        for exchange in waiting.dropLast() { stepper.table.take(.cancel(exchange.id)) }
        #expect(origin.budget.waiterCount == 1)
        gate.open()
        stepper.turn { stepper.table.isIdle }
        #expect(try await held.text == "/held")
        #expect(try await waiting[99].text == "/late")
        #expect(origin.budget.waiterCount == 0 && server.requestCount == 2)
    }

    enum Step: CaseIterable { case awaiting, receivingHead, receivingBody }

    @Test(arguments: Step.allCases)
    func cancelClosesTheSocketAndGivesThePermitBack(step: Step) async throws {
        let (closings, didClose) = AsyncStream<Void>.makeStream()
        let server = try LoopbackServer { request, connection in
            guard request.target == "/held" else { return connection.respond(body: "next") }
            if step != .awaiting { connection.send("HTTP/1.1 200 OK\r\n") }
            if step == .receivingBody { connection.send("Content-Length: 9\r\n\r\nabc") }
            connection.waitForClose()
            didClose.yield()
        }
        let stepper = try UpstreamStepper()
        let origin = origin(perHost: 1)
        let held = OriginRequest(url: server.baseURL + "/held")
        let exchange = try stepper.start(held, at: origin)
        stepper.turn {
            guard let connection = stepper.table.connections.values.first else { return false }
            switch step {
            case .awaiting: return server.requestCount == 1
            case .receivingHead: return connection.machine.hasReceived
            case .receivingBody: return connection.machine.phase == .receiving
            }
        }
        stepper.table.take(.cancel(exchange.id))
        #expect(stepper.table.isIdle && stepper.table.connections.isEmpty)
        for await _ in closings { break }
        let next = OriginRequest(url: server.baseURL, timeout: .seconds(5))
        #expect(try await stepper.fetch(next, at: origin).text == "next")
    }

    @Test func cancelWhileConnectingClosesTheSocketAndGivesThePermitBack() async throws {
        let mute = try MuteListener()
        defer { mute.stop() }
        let server = try LoopbackServer { _, connection in connection.respond(body: "next") }
        let stepper = try UpstreamStepper()
        let origin = PlainOrigin(.init(connections: .init(maximumTotal: 1)))
        let url = "http://127.0.0.1:\(mute.port)/"
        let exchange = try stepper.start(OriginRequest(url: url), at: origin)
        stepper.turn()
        #expect(stepper.table.connections.values.map(\.machine.phase) == [.connecting])
        stepper.table.take(.cancel(exchange.id))
        #expect(stepper.table.isIdle && stepper.table.connections.isEmpty)
        let next = OriginRequest(url: server.baseURL, timeout: .seconds(5))
        #expect(try await stepper.fetch(next, at: origin).text == "next")
    }

    @Test func probeSendsNothingOverAnIdleConnection() throws {
        let server = try LoopbackServer { _, connection in connection.respond() }
        let stepper = try UpstreamStepper()
        let origin = origin(idle: 3)
        let request = OriginRequest(url: server.baseURL)
        _ = try stepper.fetch(request, at: origin)
        #expect(stepper.table.connections.count == 1)
        let probe = Exchange(loop: stepper.mailbox, windowBytesMax: 1)
        stepper.table.take(.start(try UpstreamCall(probe, request, isSent: false, origin)))
        stepper.turn { stepper.table.isIdle }
        #expect(server.requestCount == 1)
    }

    /// An origin may serve no more connections at a time, and the new one would wait for its end.
    @Test(arguments: 1...3)
    func idleConnectionsCountTowardsTheLimitOfAHost(perHost: Int) async throws {
        let server = try LoopbackServer { request, connection in
            connection.respond(body: request.method)
        }
        let stepper = try UpstreamStepper()
        let origin = origin(perHost: perHost)
        for number in 1...5 {
            // A request that cannot be sent twice uses no idle connection.
            let post = OriginRequest(method: .post, url: server.baseURL)
            let exchange = try stepper.start(post, at: origin)
            #expect(stepper.table.connections.count == min(number, perHost))
            stepper.turn { stepper.table.isIdle }
            #expect(try await exchange.text == "POST")
        }
        let get = OriginRequest(url: server.baseURL)
        #expect(try await stepper.fetch(get, at: origin).text == "GET")
        #expect(server.connectionCount == 5)
        #expect(stepper.table.connections.count == perHost)
    }

    @Test func idleConnectionsOfAllHostsAreLimited() async throws {
        let gate = LoopbackGate()
        let servers = try (0..<2).map { _ in
            try LoopbackServer { _, connection in
                gate.wait()
                connection.respond()
            }
        }
        let stepper = try UpstreamStepper()
        let origin = origin(idle: 3)
        for server in servers {
            for _ in 0..<4 { _ = try stepper.start(.init(url: server.baseURL), at: origin) }
        }
        stepper.turn { servers.allSatisfy { $0.requestCount == 4 } }
        gate.open()
        stepper.turn { stepper.table.isIdle }
        #expect(stepper.table.connections.count == 3)
        #expect(servers.allSatisfy { $0.connectionCount == 4 })
    }

    /// A new configuration replaces the origin; the connections to the old one are idle for a while.
    @Test func idleConnectionsOfAllOriginsAreLimited() async throws {
        let server = try LoopbackServer { _, connection in connection.respond() }
        let stepper = try UpstreamStepper()
        for idleMax in [3, 3, 3, 3, 2, 0] {
            _ = try stepper.fetch(OriginRequest(url: server.baseURL), at: origin(idle: idleMax))
            #expect(stepper.table.connections.count <= idleMax)
        }
        #expect(server.connectionCount == 6)
    }

    /// Other parts of the process may have opened more files than planned.
    @Test func idleConnectionEndsIfNoOtherFileCanBeOpened() async throws {
        let gate = LoopbackGate()
        defer { gate.open() }
        let servers = try (0..<2).map { _ in
            try LoopbackServer { request, connection in
                if request.target == "/held" { gate.wait() }
                connection.respond(body: request.target)
            }
        }
        let stepper = try UpstreamStepper()
        let makeSocket = stepper.table.makeSocket
        stepper.table.makeSocket = { [unowned table = stepper.table] family in
            guard table.connections.isEmpty else {
                errno = EMFILE
                return -1
            }
            return makeSocket(family)
        }
        let origin = origin()
        for server in servers {
            let exchange = try stepper.fetch(.init(url: server.baseURL + "/a"), at: origin)
            #expect(try await exchange.text == "/a")
        }
        #expect(servers.map(\.connectionCount) == [1, 1])
        #expect(stepper.table.connections.count == 1)
        // A connection in use is not closed.
        let held = try stepper.start(.init(url: servers[1].baseURL + "/held"), at: origin)
        let other = try stepper.start(.init(url: servers[0].baseURL + "/a"), at: origin)
        await #expect(throws: LocalLack.self) { try await other.text }
        stepper.table.take(.cancel(held.id))
    }

    /// A new origin may lie where a released one lay, whose hosts the loop still has.
    @Test func eachOriginHasItsOwnHosts() async throws {
        let server = try LoopbackServer { _, connection in connection.respond(body: "x") }
        let other = try LoopbackServer { _, connection in connection.respond(body: "y") }
        let stepper = try UpstreamStepper()
        for number in 1...50 {
            let origin = origin()
            // The same host is not always the first one in the origin's budget.
            let urls = [server.baseURL, other.baseURL].prefix(1 + number % 2).reversed()
            for url in urls { _ = try stepper.fetch(OriginRequest(url: url), at: origin) }
            #expect(server.connectionCount == number)
        }
        #expect(stepper.table.hosts.count == 75)
        withExtendedLifetime(other) {}
    }

    @Test func exchangesOfAnEndedLoopFailAndTheirPermitsAreGivenBack() async throws {
        let server = try LoopbackServer { _, connection in connection.respond(body: "next") }
        let origin = origin(perHost: 1)
        let ended = try Mailbox()
        let request = OriginRequest(url: server.baseURL)
        let call = try UpstreamCall(
            Exchange(loop: ended, windowBytesMax: 1),
            request,
            origin
        )
        let place = origin.budget.place(of: call.url.hostText(in: request.url), call.url.port)
        #expect(origin.budget.take(place, for: .next(), at: ended))
        #expect(!origin.budget.take(place, for: .next(), at: ended))
        origin.budget.give(place)
        ended.post(.upstream(.start(call)))
        ended.close([])
        await #expect(throws: CacheError.self) { try await call.exchange.text }
        let stepper = try UpstreamStepper()
        #expect(try await stepper.fetch(request, at: origin).text == "next")
    }
}
