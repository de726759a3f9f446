import CacheEngine
import CacheTestSupport
import Foundation
import Platform
import Synchronization
import Testing

@testable import CacheProxy

/// Clients, purges and a failing origin at the same time, for `SOAK_SECONDS` seconds.
///
/// Every body names its key and version. So the test detects a wrong body, and a version older than
/// a purge that returned before the request began. Afterwards no request may hang and no handle may
/// leak.
@Suite(.serialized) struct SoakTests {
    static let keyCount = 60
    static let clientCount = 8

    /// The current versions at the origin, and the oldest versions that clients may still get.
    final class World: Sendable {
        struct State {
            var versions = [Int](repeating: 0, count: SoakTests.keyCount)
            var oldest = [Int](repeating: 0, count: SoakTests.keyCount)
            var faults = SeededRandom(seed: 1)
            var isFaulty = true
            var wrong: [String] = []
            var good = 0
            /// The latest events of each key, to explain a complaint.
            var history = [[String]](repeating: [], count: SoakTests.keyCount)
        }
        let state = Mutex(State())

        func note(_ complaint: String) { state.withLock { $0.wrong.append(complaint) } }

        /// A complaint about a key, with what happened to it before.
        func note(_ complaint: String, of key: Int) {
            let history = state.withLock { $0.history[key] }
            note(([complaint] + history).joined(separator: "\n    "))
        }

        func tell(_ event: String, of key: Int) {
            let milliseconds = monotonicNanoseconds() / 1_000_000
            state.withLock { state in
                state.history[key].append("\(milliseconds) \(event)")
                if state.history[key].count > 40 { state.history[key].removeFirst() }
            }
        }
    }

    static func body(_ key: Int, _ version: Int) -> String {
        String(repeating: "\(key):\(version);", count: 1 + key * key * 3)
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
            guard let key = Int(request.target.dropFirst(3)), key < keyCount else {
                return try socket.answer(404)
            }
            let (version, fault) = world.state.withLock { state in
                let fault = Int.random(in: 0..<100, using: &state.faults)
                return (state.versions[key], state.isFaulty ? fault : 99)
            }
            let text = body(key, version)
            let tag = request["If-None-Match"] ?? "no tag"
            world.tell("origin has \(version), asked with \(tag), fault \(fault)", of: key)
            let fields = [
                "Cache-Control: max-age=3, stale-while-revalidate=2", "ETag: \"\(version)\"",
                "Cache-Tag: key-\(key)",
            ]
            switch fault {
            case 0..<2: return .end
            case 2..<4: return .reset
            case 4: return try socket.answer(503, [], "down")
            case 5..<7:
                try socket.write(
                    "HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count + 10)\r\n\r\n\(text)"
                )
                return .end
            case 7..<30:
                try socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n")
                try socket.write(fields.map { $0 + "\r\n" }.joined() + "\r\n")
                let size = String(text.utf8.count, radix: 16)
                try socket.write("\(size)\r\n\(text)\r\n0\r\n\r\n")
                return .keep
            default:
                if request["If-None-Match"] == "\"\(version)\"" {
                    return try socket.answer(304, fields)
                }
                return try socket.answer(200, fields, text)
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
            let key = min(
                Int.random(in: 0..<keyCount, using: &random),
                Int.random(in: 0..<keyCount, using: &random)
            )
            let request = "GET /k/\(key) HTTP/1.1\r\nHost: x\r\n\r\n"
            if Int.random(in: 0..<20, using: &random) == 0 {
                try await client.send(request)
                client.socket.abort()
                client = try proxy.client()
                continue
            }
            let oldest = world.state.withLock { $0.oldest[key] }
            world.tell("client \(seed) asks for \(oldest) or newer", of: key)
            do {
                let response = try await client.exchange(request)
                if response.isComplete {
                    let status = response["Cache-Status"] ?? ""
                    let version = response["ETag"] ?? "no version"
                    world.tell("client \(seed) got \(version) by \(status)", of: key)
                    check(response, key, oldest, world)
                    continue
                }
            } catch let failure as WireFailure {
                if failure == .silence { world.note("no answer about \(key)") }
            }
            client = try proxy.client()
        }
    }

    static func check(_ response: WireResponse, _ key: Int, _ oldest: Int, _ world: World) {
        guard response.status == 200 else {
            if ![502, 503, 504].contains(response.status) {
                world.note("status \(response.status)")
            }
            return
        }
        let text = response.text
        let version = text.prefix { $0 != ";" }.split(separator: ":").last.flatMap { Int($0) } ?? -1
        if text != body(key, version) {
            return world.note("wrong body of \(key): \(text.prefix(40))", of: key)
        }
        if version < oldest {
            return world.note("\(key): version \(version) after purge at \(oldest)", of: key)
        }
        world.state.withLock { $0.good += 1 }
    }

    static func purge(
        _ proxy: ProxyHarness,
        _ world: World,
        until end: ContinuousClock.Instant
    ) async throws {
        var random = SeededRandom(seed: 77)
        while ContinuousClock.now < end {
            let key = Int.random(in: 0..<keyCount, using: &random)
            let version = world.state.withLock { state in
                state.versions[key] += 1
                return state.versions[key]
            }
            let isByTag = Bool.random(using: &random)
            world.tell("purge to \(version) by \(isByTag ? "tag" : "URL")", of: key)
            do {
                if isByTag {
                    try await proxy.service.cache.purge(tag: "key-\(key)")
                } else {
                    try await proxy.service.cache.remove(CacheRequest(url: "http://x/k/\(key)"))
                }
            } catch let error as CacheError where error.code == .storageFailed {
                // The disk is full, and the caller knows that its removal may be lost.
                world.tell("not purged: \(error)", of: key)
                _ = await pause(milliseconds: 10)
                continue
            }
            world.state.withLock { $0.oldest[key] = version }
            world.tell("purged to \(version)", of: key)
            _ = await pause(milliseconds: 10)
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
            _ = await pause(milliseconds: 100)
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
            _ = await pause(milliseconds: 300)
            try? FileManager.default.removeItem(atPath: ballast)
            _ = await pause(milliseconds: 700)
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
        #expect(await eventuallyAsync { (try? await proxy.request("/k/1").status) == 200 })
        for key in 0..<keyCount {
            try await proxy.service.cache.purge(tag: "key-\(key)")
            let response = try await proxy.request("/k/\(key)")
            let version = world.state.withLock { $0.versions[key] }
            #expect(response.status == 200 && response.text == body(key, version), "\(key)")
        }
    }

    static func pause(milliseconds: Int32) async -> Bool {
        (try? await onThread { poll(nil, 0, milliseconds) == 0 }) ?? false
    }

    static func eventuallyAsync(_ isSo: @Sendable () async -> Bool) async -> Bool {
        for _ in 0..<400 {
            if await isSo() { return true }
            _ = await pause(milliseconds: 50)
        }
        return false
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
