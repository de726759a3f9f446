import CacheEngine
import CacheTestSupport
import Foundation
import Testing

@testable import CacheProxy

/// Clients, purges, reloads and a failing origin at the same time, for `SOAK_SECONDS` seconds in which
/// the proxy ends and begins again on its disk, with one more worker each time.
///
/// Every body names its page and version. So the test detects a wrong body, and a version older than
/// a purge or a change that was confirmed before the request began. Afterwards no request may hang and
/// no handle may leak.
@Suite(.serialized) struct SoakTests {
    static let clientCount = 8

    static let lifeCount = 3

    @Test func nothingIsWrongLostOrStuckAfterFaults() async throws {
        let environment = ProcessInfo.processInfo.environment
        let seconds = environment["SOAK_SECONDS"].flatMap { Double($0) } ?? 2
        let directory = environment["SOAK_DIRECTORY"] ?? NSTemporaryDirectory()
        let disk = directory + "/soak-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: disk) }
        let world = SoakWorld()
        var origin = try WireOrigin(world.answer)
        let port = origin.port
        let clock = TestClock()
        let handlesBefore = Self.openHandles()
        for life in 1...Self.lifeCount {
            if life > 1 { origin = try WireOrigin(port: port, world.answer) }
            world.tellAll("life \(life)")
            try await withProxy(
                origins: [port],
                clock: clock,
                configure: {
                    $0.firstByteTime = .seconds(5)
                    $0.memory = .megabytes(8)
                    $0.diskDirectory = disk
                    $0.diskSize = .megabytes(64)
                    $0.workers = life
                }
            ) { proxy async throws in
                let end = ContinuousClock.now + .seconds(seconds / Double(Self.lifeCount))
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for client in 0..<Self.clientCount {
                        let seed = UInt64(life * Self.clientCount + client)
                        group.addTask { try await Self.ask(proxy, world, seed: seed, until: end) }
                    }
                    group.addTask { try await Self.purge(proxy, world, until: end) }
                    group.addTask { [origin] in
                        try await Self.disturb(proxy, world, origin, until: end)
                    }
                    if environment["SOAK_DIRECTORY"] != nil {
                        group.addTask { await Self.fill(directory, until: end) }
                    }
                    try await group.waitForAll()
                }
                if life == Self.lifeCount { try await Self.checkNothingIsStuck(proxy, world, port) }
                #expect(
                    await eventually {
                        proxy.service.counters.allSatisfy { $0[.connectionsOpen] == 0 }
                    }
                )
            }
        }
        let (wrong, good) = world.result
        #expect(wrong.isEmpty, "\(wrong.prefix(5).joined(separator: "\n"))")
        #expect(good > Int(seconds) * 10)
        // The threads of the test's own origin end a little later.
        let areClosed = await eventually { Self.openHandles().count <= handlesBefore.count + 8 }
        #expect(areClosed, "\(Self.openHandles())")
    }

    /// Sends requests, at times several at once, and at times without waiting for the responses.
    static func ask(
        _ proxy: ProxyHarness,
        _ world: SoakWorld,
        seed: UInt64,
        until end: ContinuousClock.Instant
    ) async throws {
        var random = SeededRandom(seed: seed)
        var client = try proxy.client()
        while ContinuousClock.now < end {
            let count = Int.random(in: 0..<10, using: &random) == 0 ? 3 : 1
            let requests = (0..<count).map { _ in world.request(using: &random) }
            let isLeaving = Int.random(in: 0..<20, using: &random) == 0
            for request in requests {
                let wanted = "\(request.kind) \(request.form) of \(request.oldest) or newer"
                world.tell("\(seed) asks for \(wanted), leaves: \(isLeaving)", of: request.page)
            }
            var waiting = requests[...]
            do {
                try await client.send(requests.map(\.text).joined())
                if isLeaving {
                    await pause(milliseconds: Int32.random(in: 0..<6, using: &random))
                    client.socket.abort()
                    waiting = []
                }
                while let request = waiting.first {
                    let response = try await client.response(isHead: request.isHead)
                    guard response.isComplete else { break }
                    waiting.removeFirst()
                    world.judge(response, to: request, of: seed)
                }
                if waiting.isEmpty, !isLeaving { continue }
            } catch let failure as WireFailure {
                if failure == .silence, let request = waiting.first {
                    world.complain("no answer", of: request.page)
                }
            }
            client = try proxy.client()
        }
    }

    static func purge(
        _ proxy: ProxyHarness,
        _ world: SoakWorld,
        until end: ContinuousClock.Instant
    ) async throws {
        var random = SeededRandom(seed: 77)
        while ContinuousClock.now < end {
            let page = SoakPage(using: &random)
            let version = world.change(page)
            let isByTag = Bool.random(using: &random)
            world.tell("purge to \(version) by \(isByTag ? "tag" : "URL")", of: page)
            do {
                let cache = proxy.service.cache
                if isByTag {
                    try await cache.purge(tag: page.tag)
                } else {
                    try await cache.remove(CacheRequest(url: "http://x\(page.target)"))
                }
                world.confirm(version, of: page)
                world.tell("purged to \(version)", of: page)
            } catch let error as CacheError where error.code == .storageFailed {
                // The disk is full, and the caller knows that its removal may be lost.
                world.tell("not purged: \(error)", of: page)
            }
            await pause(milliseconds: 10)
        }
    }

    /// Advances the clock, changes the configuration, and stops and restarts the origin.
    static func disturb(
        _ proxy: ProxyHarness,
        _ world: SoakWorld,
        _ first: WireOrigin,
        until end: ContinuousClock.Instant
    ) async throws {
        var random = SeededRandom(seed: 78)
        var origin = first
        while ContinuousClock.now < end {
            await pause(milliseconds: 100)
            proxy.advance(1)
            switch Int.random(in: 0..<15, using: &random) {
            case 0:
                origin.stop()
                await pause(milliseconds: 300)
                proxy.advance(3)
                origin = try WireOrigin(port: first.port, world.answer)
            case 1...3:
                // The origins get another client, whose predecessor has responses under way.
                var configuration = proxy.service.configuration
                configuration.originConnectionsMax = Int.random(in: 20..<40, using: &random)
                #expect(try proxy.service.reload(configuration) == [])
            default: break
            }
        }
        origin.stop()
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
        _ world: SoakWorld,
        _ port: UInt16
    ) async throws {
        world.endFaults()
        let origin = try WireOrigin(port: port, world.answer)
        defer { origin.stop() }
        // The origin may still be in its longest back-off pause, so the first requests may fail.
        #expect(await eventually(seconds: 20) { (try? await proxy.request("/k/1").status) == 200 })
        for page in (0..<SoakPage.count).map(SoakPage.init) {
            try await proxy.service.cache.purge(tag: page.tag)
            let response = try await proxy.request(page.target)
            let version = world.version(of: page)
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
