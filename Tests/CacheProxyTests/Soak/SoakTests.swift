import CacheEngine
import CacheTestSupport
import Foundation
import Platform
import Synchronization
import Testing

@testable import CacheProxy

/// Clients, purges and a failing origin at the same time, for `SOAK_SECONDS` seconds.
///
/// Every body names its page and version. So the test detects a wrong body, and a version older than
/// a purge that returned before the request began. Afterwards no request may hang and no handle may
/// leak.
@Suite(.serialized) struct SoakTests {
    static let clientCount = 8

    /// The current versions at the origin, and the oldest versions that clients may still get.
    final class World: Sendable {
        struct State {
            var versions = [Int](repeating: 0, count: SoakPage.count)
            var oldest = [Int](repeating: 0, count: SoakPage.count)
            var faults = SeededRandom(seed: 1)
            var isFaulty = true
            var wrong: [String] = []
            var good = 0
            /// The latest events of each page, to explain a complaint.
            var history = [[String]](repeating: [], count: SoakPage.count)
        }
        let state = Mutex(State())

        /// Notes a complaint about a page, with what happened to it before.
        func complain(_ complaint: String, of page: SoakPage) {
            state.withLock { state in
                let lines = ["page \(page.number): \(complaint)"] + state.history[page.number]
                state.wrong.append(lines.joined(separator: "\n    "))
            }
        }

        func tell(_ event: String, of page: SoakPage) {
            let milliseconds = monotonicNanoseconds() / 1_000_000
            state.withLock { state in
                state.history[page.number].append("\(milliseconds) \(event)")
                if state.history[page.number].count > 40 {
                    state.history[page.number].removeFirst()
                }
            }
        }
    }

    @Test func nothingIsWrongLostOrStuckAfterFaults() async throws {
        let environment = ProcessInfo.processInfo.environment
        let seconds = environment["SOAK_SECONDS"].flatMap { Double($0) } ?? 2
        let directory = environment["SOAK_DIRECTORY"] ?? NSTemporaryDirectory()
        let disk = directory + "/soak-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: disk) }
        let world = World()
        let script = Self.script(world)
        let first = try WireOrigin(script)
        let port = first.port
        let handlesBefore = Self.openHandles()
        try await withProxy(
            origins: [port],
            configure: {
                $0.firstByteTime = .seconds(5)
                $0.memory = .megabytes(8)
                $0.diskDirectory = disk
                $0.diskSize = .megabytes(64)
            }
        ) { proxy async throws in
            let end = ContinuousClock.now + .seconds(seconds)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for client in 0..<Self.clientCount {
                    group.addTask {
                        try await Self.ask(proxy, world, seed: UInt64(client), until: end)
                    }
                }
                group.addTask { try await Self.purge(proxy, world, until: end) }
                group.addTask { try await Self.disturb(proxy, first, script, until: end) }
                if environment["SOAK_DIRECTORY"] != nil {
                    group.addTask { await Self.fill(directory, until: end) }
                }
                try await group.waitForAll()
            }
            let wrong = world.state.withLock { state in
                state.isFaulty = false
                return state.wrong
            }
            #expect(wrong.isEmpty, "\(wrong.prefix(5).joined(separator: "\n"))")
            #expect(world.state.withLock { $0.good } > Int(seconds) * 10)
            try await Self.checkNothingIsStuck(proxy, world, script, port)
            #expect(await eventually { proxy.service.counters[0][.connectionsOpen] == 0 })
        }
        // The threads of the test's own origin end a little later.
        let areClosed = await eventually { Self.openHandles().count <= handlesBefore.count + 8 }
        #expect(areClosed, "\(Self.openHandles())")
    }

    static func script(_ world: World) -> WireOrigin.Script {
        { request, socket in
            guard let page = SoakPage(target: request.target) else {
                return try socket.answer(404)
            }
            let (version, fault) = world.state.withLock { state in
                let fault = Int.random(in: 0..<100, using: &state.faults)
                return (state.versions[page.number], state.isFaulty ? fault : 99)
            }
            let text = page.body(version, form: request["X-Form"] ?? "")
            let fields = page.fields(version)
            let asked = "\(request.head), tag \(request["If-None-Match"] ?? "none")"
            world.tell("origin has \(version): \(asked), fault \(fault)", of: page)
            let isHead = request.method == "HEAD"
            switch fault {
            case 0..<2: return .end
            case 2..<4: return .reset
            case 4: return try socket.answer(503, [], "down", isHead: isHead)
            case 5..<7 where !isHead:
                try socket.write(
                    "HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count + 10)\r\n\r\n\(text)"
                )
                return .end
            case 7..<30 where !isHead:
                try socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n")
                try socket.write(fields.map { $0 + "\r\n" }.joined() + "\r\n")
                // A client may leave between the head and the body.
                if fault < 12 { poll(nil, 0, 5) }
                let size = String(text.utf8.count, radix: 16)
                try socket.write("\(size)\r\n\(text)\r\n0\r\n\r\n")
                return .keep
            default:
                if request["If-None-Match"] == "\"\(version)\"" {
                    return try socket.answer(304, fields)
                }
                return try socket.answer(200, fields, text, isHead: isHead)
            }
        }
    }

    static func ask(
        _ proxy: ProxyHarness,
        _ world: World,
        seed: UInt64,
        until end: ContinuousClock.Instant
    ) async throws {
        var random = SeededRandom(seed: seed)
        var client = try proxy.client()
        while ContinuousClock.now < end {
            let oldest = world.state.withLock { $0.oldest }
            let request = SoakRequest(oldest: oldest, using: &random)
            let page = request.page
            let name = "client \(seed)"
            let isLeaving = Int.random(in: 0..<20, using: &random) == 0
            let wanted = "\(request.kind) \(request.form) of \(oldest[page.number]) or newer"
            world.tell("\(name) asks for \(wanted)\(isLeaving ? ", and leaves" : "")", of: page)
            do {
                if isLeaving {
                    try await client.send(request.text)
                    await pause(milliseconds: Int32.random(in: 0..<6, using: &random))
                    client.socket.abort()
                    client = try proxy.client()
                    continue
                }
                let response = try await client.exchange(
                    request.text,
                    isHead: request.kind == .head
                )
                if response.isComplete {
                    let (status, version) = (response["Cache-Status"] ?? "", response["ETag"] ?? "")
                    world.tell("\(name) got \(response.status) \(version) \(status)", of: page)
                    if let fault = request.fault(of: response, oldest: oldest[page.number]) {
                        world.complain(fault, of: page)
                    } else if response.status < 500 {
                        world.state.withLock { $0.good += 1 }
                    }
                    continue
                }
            } catch let failure as WireFailure {
                if failure == .silence { world.complain("no answer", of: page) }
            }
            client = try proxy.client()
        }
    }

    static func purge(
        _ proxy: ProxyHarness,
        _ world: World,
        until end: ContinuousClock.Instant
    ) async throws {
        var random = SeededRandom(seed: 77)
        while ContinuousClock.now < end {
            let page = SoakPage(Int.random(in: 0..<SoakPage.count, using: &random))
            let version = world.state.withLock { state in
                state.versions[page.number] += 1
                return state.versions[page.number]
            }
            let isByTag = Bool.random(using: &random)
            world.tell("purge to \(version) by \(isByTag ? "tag" : "URL")", of: page)
            do {
                let cache = proxy.service.cache
                if isByTag {
                    try await cache.purge(tag: page.tag)
                } else {
                    try await cache.remove(CacheRequest(url: "http://x\(page.target)"))
                }
                world.state.withLock { $0.oldest[page.number] = version }
                world.tell("purged to \(version)", of: page)
            } catch let error as CacheError where error.code == .storageFailed {
                // The disk is full, and the caller knows that its removal may be lost.
                world.tell("not purged: \(error)", of: page)
            }
            await pause(milliseconds: 10)
        }
    }

    /// Advances the clock, and stops and restarts the origin.
    static func disturb(
        _ proxy: ProxyHarness,
        _ first: WireOrigin,
        _ script: @escaping WireOrigin.Script,
        until end: ContinuousClock.Instant
    ) async throws {
        var origin: WireOrigin? = first
        var round = 0
        while ContinuousClock.now < end {
            round += 1
            await pause(milliseconds: 100)
            proxy.advance(1)
            if round % 15 == 10 {
                origin?.stop()
                origin = nil
            } else if round % 15 == 13 {
                origin = try WireOrigin(port: first.port, script)
            }
        }
        origin?.stop()
    }

    /// Takes and returns the rest of the file system, as another program on it may.
    static func fill(_ directory: String, until end: ContinuousClock.Instant) async {
        let ballast = directory + "/ballast-\(UUID().uuidString)"
        let piece = Data(repeating: 0, count: 256 * 1024)
        while ContinuousClock.now < end {
            _ = FileManager.default.createFile(atPath: ballast, contents: nil)
            if let file = FileHandle(forWritingAtPath: ballast) {
                while (try? file.write(contentsOf: piece)) != nil {}
                try? file.close()
            }
            await pause(milliseconds: 300)
            try? FileManager.default.removeItem(atPath: ballast)
            await pause(milliseconds: 700)
        }
    }

    static func checkNothingIsStuck(
        _ proxy: ProxyHarness,
        _ world: World,
        _ script: @escaping WireOrigin.Script,
        _ port: UInt16
    ) async throws {
        let origin = try WireOrigin(port: port, script)
        defer { origin.stop() }
        // The origin may still be in its longest back-off pause, so the first requests may fail.
        #expect(await eventually(seconds: 20) { (try? await proxy.request("/k/1").status) == 200 })
        for page in (0..<SoakPage.count).map(SoakPage.init) {
            try await proxy.service.cache.purge(tag: page.tag)
            let response = try await proxy.request(page.target)
            let version = world.state.withLock { $0.versions[page.number] }
            let isRight = response.text == page.body(version, form: "")
            #expect(response.status == 200 && isRight, "\(page.number)")
        }
    }

    /// What each open descriptor is of.
    static func openHandles() -> [String] {
        let files = FileManager.default
        let numbers = (try? files.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return numbers.map { number in
            (try? files.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")) ?? number
        }
    }
}
