import CacheTestSupport
import Platform
import RESP
import Synchronization
import Testing

@testable import RedisClient

/// One link without the thread that serves it: the test gives the time, and passes events on.
@Suite(.timeLimit(.minutes(1))) struct NodeLinkTests {
    private static let connectNanoseconds: UInt64 = 200_000_000
    private static let idleNanoseconds: UInt64 = 60_000_000_000

    private final class Scene {
        let link: NodeLink
        private let node: Node
        private let table: LinkTable
        private let poller: SocketPoller

        init(
            _ address: NodeAddress = NodeAddress(host: "redis.invalid", port: 7),
            failureCountMax: Int = 5
        ) throws {
            var options = RedisOptions(connectLimit: .milliseconds(200))
            options.breaker.failureCountMax = failureCountMax
            options.idleLimit = .seconds(60)
            poller = try SocketPoller()
            table = LinkTable(RedisLoop(options, nil, poller.waker), poller)
            node = Node(NodeKey(address), options)
            link = NodeLink(node, table, options, nil, 0)
        }

        deinit {
            link.shutDown()
            poller.close()
        }

        var isSuspended: Bool { node.admission.withLock { $0.suspension != nil } }

        /// A command arrives, and the link acts on it.
        func ask(at now: UInt64, until deadline: UInt64 = .max) {
            let batch = Batch("a", deadline: deadline)
            let refusal = node.admission.withLock { $0.admit(batch) }
            #expect(refusal == nil)
            link.enqueue(batch, now)
            link.step(now)
        }

        /// A command arrives while the server is suspended.
        func askInVain() {
            let refusal = node.admission.withLock { $0.admit(Batch("a")) }
            #expect(refusal?.code == .suspended)
        }

        /// Waits for an event of the socket, and passes it on as if it were `now`.
        func turn(_ now: UInt64) {
            var ready: [SocketReadiness] = []
            poller.wait(timeoutMilliseconds: 20_000) { ready.append($0) }
            #expect(!ready.isEmpty)
            let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 64)
            defer { room.deallocate() }
            for event in ready { link.happened(event, room, now) }
            link.step(now)
        }

        /// The errors of the commands that ended since the last call.
        func errors() -> [RedisError] {
            var finished: [NodeConnection.Finished] = []
            link.takeFinished(into: &finished)
            return finished.compactMap { one in
                if case .failure(let error) = one.outcome { error } else { nil }
            }
        }
    }

    private static func addresses(_ servers: [FakeServer]) throws -> [SocketAddress] {
        try servers.map { server in
            let address = server.address
            return try #require(SocketAddress.literal(address.host, port: Int(address.port)))
        }
    }

    @Test(
        arguments: [
            (EAI_NONAME, 0), (EAI_AGAIN, 0), (EAI_FAIL, 0), (EAI_NONAME, EMFILE),
        ] as [(Int32, Int32)]
    )
    func failedLookUpTellsTheResolversReason(code: Int32, systemCode: Int32) throws {
        let scene = try Scene()
        scene.ask(at: 0)
        #expect(scene.errors() == [])
        scene.link.resolved(.failure(LookUpFailure(code: code, systemCode: systemCode)), 1)
        let reason = String(cString: gai_strerror(code))
        let detail = "Cannot find the address of redis.invalid: \(reason)"
        #expect(scene.errors() == [RedisError(.unreachable, detail: detail)])
    }

    @Test(arguments: [(EAI_SYSTEM, EMFILE), (EAI_AGAIN, ENFILE)] as [(Int32, Int32)])
    func lookUpThatLacksAFileIsAFaultOfThisMachine(code: Int32, systemCode: Int32) throws {
        let scene = try Scene()
        scene.ask(at: 0)
        scene.link.resolved(.failure(LookUpFailure(code: code, systemCode: systemCode)), 1)
        let detail = "Cannot look up redis.invalid: \(String(cString: strerror(systemCode)))"
        #expect(scene.errors() == [RedisError(.systemFailed, detail: detail)])
    }

    @Test func addressesOfALateLookUpServeTheNextAttempt() async throws {
        let server = try FakeServer { $0.waitForClose() }
        let scene = try Scene()
        scene.ask(at: 0)
        scene.link.step(Self.connectNanoseconds)
        #expect(scene.errors().count == 1)
        let found = try Self.addresses([server])
        scene.link.resolved(.success(found), 2 * Self.connectNanoseconds)
        scene.ask(at: 3 * Self.connectNanoseconds)
        #expect(await eventually { server.connectionCount == 1 })
        #expect(scene.errors() == [])
    }

    @Test func addressThatNeverAnswersHidesNoOther() async throws {
        let servers = try (0..<2).map { _ in try FakeServer { $0.waitForClose() } }
        let scene = try Scene()
        scene.ask(at: 0)
        // The events of the first socket are not passed on.
        scene.link.resolved(.success(try Self.addresses(servers)), 1)
        scene.link.step(Self.connectNanoseconds)
        #expect(scene.errors().map(\.code) == [.unreachable])
        scene.ask(at: 2 * Self.connectNanoseconds)
        #expect(await eventually { servers[1].connectionCount == 1 })
        #expect(scene.errors() == [])
    }

    /// The server accepts, and its greeting has no reply.
    @Test func addressThatAcceptsAndHangsHidesNoOther() async throws {
        let servers = try (0..<2).map { _ in try FakeServer { $0.waitForClose() } }
        let scene = try Scene()
        scene.ask(at: 0)
        scene.link.resolved(.success(try Self.addresses(servers)), 1)
        scene.turn(2)
        #expect(await eventually { servers[0].connectionCount == 1 })
        scene.link.step(Self.connectNanoseconds)
        #expect(scene.errors().count == 1)
        scene.ask(at: 2 * Self.connectNanoseconds)
        #expect(await eventually { servers[1].connectionCount == 1 })
        #expect(scene.errors() == [])
    }

    @Test func oldAddressesAreLookedUpAgain() async throws {
        let servers = try (0..<3).map { _ in try FakeServer { $0.waitForClose() } }
        let scene = try Scene()
        scene.ask(at: 0)
        scene.link.resolved(.success(try Self.addresses(Array(servers[..<2]))), 1)
        scene.link.step(Self.connectNanoseconds)
        #expect(scene.errors().count == 1)
        let later: UInt64 = 31_000_000_000
        scene.ask(at: later)
        scene.link.resolved(.success(try Self.addresses([servers[2]])), later)
        #expect(await eventually { servers[2].connectionCount == 1 })
        #expect(servers[1].connectionCount == 0 && scene.errors() == [])
    }

    @Test func lateLookUpIsNamed() throws {
        let scene = try Scene()
        scene.ask(at: 0)
        scene.link.step(Self.connectNanoseconds - 1)
        #expect(scene.errors() == [])
        scene.link.step(Self.connectNanoseconds)
        let detail =
            "The name of the server redis.invalid:7 was not looked up within the limit"
        #expect(scene.errors() == [RedisError(.unreachable, detail: detail)])
    }

    /// One that is down and asked stays suspended; it is forgotten once nobody asks.
    @Test func suspendedServerThatIsAskedIsNotForgotten() throws {
        let scene = try Scene(failureCountMax: 1)
        scene.ask(at: 0)
        scene.link.resolved(.failure(LookUpFailure(code: EAI_NONAME, systemCode: 0)), 0)
        #expect(scene.errors().count == 1 && scene.isSuspended)
        scene.askInVain()
        #expect(scene.link.isIdle(Self.idleNanoseconds))
        scene.link.retire(Self.idleNanoseconds)
        #expect(scene.isSuspended && !scene.link.isIdle(2 * Self.idleNanoseconds - 1))
        #expect(scene.link.isIdle(2 * Self.idleNanoseconds))
        scene.link.retire(2 * Self.idleNanoseconds)
        #expect(!scene.isSuspended)
    }

    /// A server that answers PING alone fails, also if commands are late when it is connected.
    @Test func lateCommandIsNoSuccess() throws {
        let server = try FakeServer { connection in connection.serve { _ in "" } }
        let scene = try Scene(server.address, failureCountMax: 2)
        for start in [0, 1_000_000_000] as [UInt64] {
            #expect(!scene.isSuspended)
            scene.ask(at: start, until: start + 10)
            scene.ask(at: start, until: start + 1_000)
            scene.turn(start + 1)
            scene.turn(start + 20)
            #expect(scene.errors().map(\.code) == [.timedOut])
            scene.link.step(start + 1_000)
            #expect(scene.errors().map(\.code) == [.timedOut])
        }
        #expect(scene.isSuspended)
    }
}
