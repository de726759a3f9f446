import CacheEngine
import CacheTestSupport
import CurlOrigin
import Platform
import Testing

@testable import CacheProxy

/// The addresses of hosts: tried in turn, kept for a while, and not for ever.
@Suite(.timeLimit(.minutes(1))) struct UpstreamHostTests {
    private func origin(connect: Duration) -> PlainOrigin {
        PlainOrigin(.init(deadlines: .init(connect: connect)))
    }

    /// Half of the connect limit remains for the other address.
    @Test func addressThatDropsPacketsLeavesTimeForTheNext() async throws {
        let mute = try MuteListener()
        defer { mute.stop() }
        let server = try LoopbackServer { _, connection in connection.respond(body: "reached") }
        let addresses = try [mute.port, server.port].map {
            try #require(SocketAddress.literal("127.0.0.1", port: Int($0)))
        }
        let stepper = try UpstreamStepper()
        let origin = origin(connect: .seconds(2))
        let exchange = try stepper.start(OriginRequest(url: "http://nowhere.invalid/"), at: origin)
        let name = try #require(stepper.table.hosts.keys.first)
        stepper.table.take(.resolved(name, .success(addresses)))
        stepper.turn { stepper.table.isIdle }
        #expect(try await exchange.text == "reached")
        // The next exchange tries that address first.
        #expect(stepper.table.hosts[name]?.addresses == addresses.reversed())
    }

    /// The addresses of a host that a server stands for.
    private func addresses(of server: LoopbackServer) throws -> [SocketAddress] {
        [try #require(SocketAddress.literal("127.0.0.1", port: Int(server.port)))]
    }

    @Test(arguments: [false, true])
    func connectionToAnAddressThatTheHostLeftIsNotUsed(isInUse: Bool) async throws {
        let stile = TurnStile()
        let old = try LoopbackServer { _, connection in
            stile.wait()
            connection.respond(body: "old")
        }
        let new = try LoopbackServer { _, connection in connection.respond(body: "new") }
        let stepper = try UpstreamStepper()
        let origin = origin(connect: .seconds(1))
        let host = UpstreamHost("nowhere.invalid", port: 80, budget: origin.budget)
        host.found(try addresses(of: old), now: stepper.table.now)
        stepper.table.hosts[host.name] = host
        let request = OriginRequest(url: "http://nowhere.invalid/")
        let first = try stepper.start(request, at: origin)
        stepper.turn { old.requestCount == 1 }
        if !isInUse {
            stile.pass()
            stepper.turn { stepper.table.isIdle }
            #expect(host.idle.count == 1)
        }
        host.awaiting = []
        stepper.table.take(.resolved(host.name, .success(try addresses(of: new))))
        if isInUse { stile.pass() }
        stepper.turn { stepper.table.isIdle }
        #expect(try await first.text == "old" && host.idle.isEmpty)
        #expect(try await stepper.fetch(request, at: origin).text == "new")
    }

    /// The kept connection serves them all, but the host may have moved.
    @Test func steadyRequestsLookTheNameUpAgain() async throws {
        let server = try LoopbackServer { _, connection in connection.respond(body: "reached") }
        let stepper = try UpstreamStepper()
        let origin = origin(connect: .seconds(1))
        let request = OriginRequest(url: "http://localhost:\(server.port)/")
        #expect(try await stepper.fetch(request, at: origin).text == "reached")
        let host = try #require(stepper.table.hosts.values.first)
        host.addressesEnd = stepper.table.now
        let second = try stepper.start(request, at: origin)
        #expect(host.awaiting != nil)
        stepper.turn { stepper.table.isIdle && host.awaiting == nil }
        #expect(try await second.text == "reached")
        #expect(host.addressesEnd > stepper.table.now && server.connectionCount == 1)
    }

    enum LookUp: CaseIterable { case fails, hangs }

    @Test(arguments: LookUp.allCases)
    func knownAddressesAreUsedIfALookUpFailsOrHangs(lookUp: LookUp) async throws {
        let server = try LoopbackServer { _, connection in connection.respond(body: "reached") }
        let address = try #require(SocketAddress.literal("127.0.0.1", port: Int(server.port)))
        let stepper = try UpstreamStepper()
        let origin = origin(connect: .seconds(1))
        let host = UpstreamHost("nowhere.invalid", port: 80, budget: origin.budget)
        let name = host.name
        host.found([address], now: stepper.table.now - UpstreamHost.addressMilliseconds)
        // A look-up is under way, so that none begins.
        host.awaiting = []
        stepper.table.hosts[name] = host
        // A POST uses no kept connection.
        let request = OriginRequest(method: .post, url: "http://nowhere.invalid/")
        let first = try stepper.start(request, at: origin)
        #expect(host.awaiting?.count == 1 && stepper.table.connections.isEmpty)
        if lookUp == .fails {
            let error = UpstreamFailure.unresolved(name.host, LookUpFailure(code: EAI_AGAIN))
            stepper.table.take(.resolved(name, .failure(error)))
        }
        stepper.turn { stepper.table.isIdle }
        #expect(try await first.text == "reached")
        // For a few seconds no exchange waits for another look-up.
        #expect(host.addressesEnd > stepper.table.now)
        let second = try stepper.start(request, at: origin)
        #expect(stepper.table.connections.values.contains { $0.exchange?.id == second.id })
        stepper.turn { stepper.table.isIdle }
        #expect(try await second.text == "reached" && server.requestCount == 2)
    }

    /// A look-up may take long, and the request holds its fields and its content.
    @Test func requestsThatGaveUpAreReleasedBeforeTheLookUpEnds() async throws {
        let server = try LoopbackServer { _, connection in connection.respond(body: "reached") }
        let stepper = try UpstreamStepper()
        let origin = origin(connect: .seconds(5))
        let host = UpstreamHost("nowhere.invalid", port: 80, budget: origin.budget)
        // A look-up is under way, so that none begins.
        host.awaiting = []
        stepper.table.hosts[host.name] = host
        let request = OriginRequest(url: "http://nowhere.invalid/")
        let calls = (0..<3).map { _ in WeakReference<UpstreamCall>() }
        for left in calls {
            let exchange = Exchange(loop: stepper.mailbox, windowBytesMax: 1)
            left.note(try Self.begin(exchange, request, at: origin, stepper.table))
            stepper.table.take(.cancel(exchange.id))
        }
        let last = try stepper.start(request, at: origin)
        #expect(calls.allSatisfy { $0.isReleased })
        stepper.table.take(.resolved(host.name, .success(try addresses(of: server))))
        stepper.turn { stepper.table.isIdle }
        #expect(try await last.text == "reached" && server.requestCount == 1)
    }

    @inline(never)
    private static func begin(
        _ exchange: Exchange,
        _ request: OriginRequest,
        at origin: PlainOrigin,
        _ table: UpstreamTable
    ) throws -> UpstreamCall {
        let call = try UpstreamCall(exchange, request, origin)
        table.take(.start(call))
        return call
    }

    /// They may belong to somebody else by now.
    @Test func addressesAreNotUsedForEver() async throws {
        let stepper = try UpstreamStepper()
        let origin = origin(connect: .seconds(1))
        let host = UpstreamHost("nowhere.invalid", port: 80, budget: origin.budget)
        let name = host.name
        let address = try #require(SocketAddress.literal("127.0.0.1", port: 1))
        host.found([address], now: stepper.table.now - UpstreamHost.keptMilliseconds)
        host.awaiting = []
        stepper.table.hosts[name] = host
        let request = OriginRequest(url: "http://nowhere.invalid/")
        let exchange = try stepper.start(request, at: origin)
        let error = UpstreamFailure.unresolved(name.host, LookUpFailure(code: EAI_NONAME))
        stepper.table.take(.resolved(name, .failure(error)))
        #expect(stepper.table.isIdle && stepper.table.connections.isEmpty)
        await #expect(throws: CacheError.self) { try await exchange.text }
    }

    @Test func addressesOutliveTheConnectionsToThem() {
        let host = UpstreamHost("a.test", port: 80, budget: ConnectionBudget(.init()))
        #expect(host.isUnused(now: 0))
        host.found([], now: 0)
        #expect(!host.isUnused(now: UpstreamHost.keptMilliseconds - 1))
        #expect(host.isUnused(now: UpstreamHost.keptMilliseconds))
    }
}
