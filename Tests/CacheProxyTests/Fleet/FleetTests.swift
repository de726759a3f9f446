import CacheTestSupport
import Foundation
import Platform
import Synchronization
import Testing

/// The recipe of `Examples/Fleet`, run with the real HAProxy.
@Suite(.serialized) struct FleetTests {
    static let keys = 1_000

    /// An origin that names the client in its response, which stays fresh during the test.
    static func origin() throws -> WireOrigin {
        try WireOrigin { request, socket in
            let client = request["X-Forwarded-For"] ?? "-"
            return try socket.answer(200, ["Cache-Control: max-age=600"], client)
        }
    }

    static func get(_ number: Int, _ fields: String = "") -> String {
        "GET /page/\(number)?v=\(number % 7) HTTP/1.1\r\nHost: fleet.test\r\n\(fields)\r\n"
    }

    /// The proxy that answers each key, asked one after the other: bounded load moves nothing.
    static func homes(_ port: UInt16) async throws -> [String] {
        try await onThread {
            let client = try WireClient(port)
            return try (0..<keys).map { number in
                try client.socket.write(get(number))
                let response = try client.read(isHead: false)
                guard response.status == 200, response.isComplete, let via = response["Via"] else {
                    throw WireFailure("\(number): \(response.statusLine)")
                }
                return String(via.split(separator: " ").last ?? "")
            }
        }
    }

    /// The homes once they no longer change: the health checks of HAProxy take their time.
    static func settledHomes(_ port: UInt16) async throws -> [String] {
        var last = try await homes(port)
        for _ in 0..<20 {
            let next = try await homes(port)
            if next == last { return next }
            last = next
        }
        throw WireFailure("The keys have moved for 20 rounds")
    }

    /// Clients that ask for keys all the time.
    final class Load: Sendable {
        private let isOver = Atomic(false)
        private let answered = Atomic(0)
        private let faults = Mutex<[String]>([])

        var count: Int { answered.load(ordering: .relaxed) }

        /// Runs `body` while four clients ask, and returns the faults that they saw.
        static func during(_ port: UInt16, _ body: (Load) async throws -> Void) async throws
            -> [String]
        {
            let load = Load()
            try await withThrowingTaskGroup { group in
                for client in 0..<4 {
                    group.addTask { try await onThread { load.ask(port, from: client) } }
                }
                defer { load.isOver.store(true, ordering: .relaxed) }
                #expect(await load.hasAnswered(100))
                try await body(load)
                #expect(await load.hasAnswered(load.count + 100))
            }
            return load.faults.withLock { $0 }
        }

        func hasAnswered(_ wanted: Int) async -> Bool {
            await eventually { self.answered.load(ordering: .relaxed) >= wanted }
        }

        private func ask(_ port: UInt16, from first: Int) {
            var number = first
            do {
                let client = try WireClient(port)
                while !isOver.load(ordering: .relaxed) {
                    number = (number * 7 + 1) % keys
                    try client.socket.write(get(number))
                    let response = try client.read(isHead: false)
                    guard response.status == 200, response.isComplete else {
                        throw WireFailure(response.statusLine)
                    }
                    answered.add(1, ordering: .relaxed)
                    // Other tests need the processor too.
                    poll(nil, 0, 1)
                }
            } catch {
                faults.withLock { $0.append("/page/\(number): \(error)") }
            }
        }
    }

    enum Ending: CaseIterable, Sendable { case planned, crash }

    @Test(arguments: Ending.allCases)
    func proxyThatGoesMovesItsOwnKeysAndNoRequestFails(_ ending: Ending) async throws {
        let origin = try Self.origin()
        defer { origin.stop() }
        try await RunningFleet.with(origin: origin.port) { fleet in
            let before = try await Self.settledHomes(fleet.port)
            #expect(Set(before) == ["a", "b", "c"])
            // One key has one home, and the health checks do not reach the origin. HAProxy gives a
            // key to another proxy while its home is busy or late.
            #expect((Self.keys...Self.keys + Self.keys / 50).contains(origin.count))

            let goingFaults = try await Load.during(fleet.port) { _ in
                switch ending {
                case .planned: try await fleet.run("take", "b")
                case .crash: try fleet.crash("b")
                }
            }
            #expect(goingFaults == [])
            let without = try await Self.settledHomes(fleet.port)
            let moved = before.indices.filter { before[$0] != without[$0] }
            #expect(moved.allSatisfy { before[$0] == "b" } && Set(without) == ["a", "c"])
            print("\(moved.count) of \(Self.keys) keys moved")
            // A third, and the unevenness of the ring.
            #expect((300...367).contains(moved.count))

            let comingFaults = try await Load.during(fleet.port) { _ in
                try await fleet.run("bring", "b")
            }
            #expect(comingFaults == [])
            #expect(await Self.isBack(fleet.port, moved[0]))
            #expect(try await Self.settledHomes(fleet.port) == before)
        }
    }

    /// Whether HAProxy gives a key of `b` to it again, within a limit.
    private static func isBack(_ port: UInt16, _ number: Int) async -> Bool {
        await eventually {
            guard let client = try? WireClient(port) else { return false }
            try? client.socket.write(get(number))
            return (try? client.read(isHead: false))?["Via"]?.hasSuffix(" b") == true
        }
    }

    /// A check that the cache or the origin answered would get what a client has stored there.
    @Test(arguments: [[String](), ["--ignore-client-no-cache"]])
    func noRequestOfAClientFailsTheHealthCheck(_ options: [String]) async throws {
        let origin = try Self.origin()
        defer { origin.stop() }
        try await RunningFleet.with(origin: origin.port, options: options) { fleet in
            #expect(try await Set(Self.settledHomes(fleet.port)) == ["a", "b", "c"])
            let requests = try Self.requestsLikeTheCheck()
            try await onThread {
                let client = try WireClient(fleet.port)
                for request in requests {
                    try client.socket.write(request)
                    #expect(try client.read(isHead: false).status == 200)
                }
            }
            let asked = origin.count
            // Three checks that fail take a proxy away, and there is one each 500 ms.
            await pause(milliseconds: 2_500)
            #expect(origin.count == asked)
            #expect(try await Set(Self.settledHomes(fleet.port)) == ["a", "b", "c"])
        }
    }

    /// Requests with the method, the target and the host of the check in `haproxy.cfg`, and others
    /// that a check may resemble.
    private static func requestsLikeTheCheck() throws -> [String] {
        let file = URL(filePath: #filePath)
            .appending(path: "../../../../Examples/Fleet/haproxy.cfg").standardized
        let text = try String(contentsOf: file, encoding: .utf8)
        let line = /http-check send meth (\S+) uri (\S+) ver HTTP\/1.1 hdr Host (\S+)/
        let check = try #require(text.firstMatch(of: line))
        let heads = ["\(check.1) \(check.2)", "GET \(check.2)", "GET /", "GET /fleet-check"]
        return heads.flatMap { head in
            ["", "Max-Forwards: 0\r\n"].map { field in
                "\(head) HTTP/1.1\r\nHost: \(check.3)\r\n\(field)\r\n"
            }
        }
    }

    /// A connection to a proxy belongs to the client that its PROXY header names.
    @Test func eachClientKeepsItsAddressOnKeptConnections() async throws {
        let origin = try Self.origin()
        defer { origin.stop() }
        try await RunningFleet.with(origin: origin.port) { fleet in
            _ = try await Self.settledHomes(fleet.port)
            try await onThread {
                let clients = try (2...4).map { try Self.client(fleet.port, from: $0) }
                for round in 0..<5 {
                    for (index, client) in clients.enumerated() {
                        try client.write(Self.get(round, "Cache-Control: no-cache\r\n"))
                        let head = try #require(try client.read(through: "\r\n\r\n"))
                        let body = try client.read(exactly: "127.0.0.2".utf8.count)
                        #expect(String(decoding: head, as: UTF8.self).contains(" 200 "))
                        #expect(body == Array("127.0.0.\(index + 2)".utf8))
                    }
                }
            }
        }
    }

    /// A client at `127.0.0.<last>`, which only Linux has without preparation.
    private static func client(_ port: UInt16, from last: UInt32) throws -> WireSocket {
        let descriptor = WireSocket.make()
        var own = WireSocket.address(0)
        own.sin_addr.s_addr = (0x7F00_0000 | last).bigEndian
        var server = WireSocket.address(port)
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isConnected =
            withUnsafePointer(to: &own) { own in
                own.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, size) == 0
                }
            }
            && withUnsafePointer(to: &server) { server in
                server.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, size) == 0
                }
            }
        let socket = WireSocket(descriptor)
        guard isConnected else { throw WireFailure("connect: \(errno)") }
        return socket
    }
}
