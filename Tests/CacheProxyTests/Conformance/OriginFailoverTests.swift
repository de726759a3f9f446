import CacheEngine
import CacheTestSupport
import Platform
import Synchronization
import Testing

@testable import CacheProxy

/// The choice among several origins, and the responses while an origin is unreachable.
@Suite struct OriginFailoverTests {
    private static let connectTime = Duration.seconds(1)

    private static func configure(_ configuration: inout ProxyConfiguration) {
        configuration.connectTime = connectTime
        configuration.firstByteTime = .seconds(3)
    }

    private static func alive() throws -> WireOrigin {
        try WireOrigin { _, socket in try socket.answer(200, [], "alive") }
    }

    /// One request waits until the connect limit; later requests do not wait.
    @Test func originThatSwallowsConnectionsFailsNoRequest() async throws {
        let mute = try MuteListener()
        let alive = try Self.alive()
        defer {
            mute.stop()
            alive.stop()
        }
        let witness = StallWitness()
        let watching = Task { await witness.watch() }
        defer { watching.cancel() }
        try await withProxy(origins: [mute.port, alive.port], configure: Self.configure) {
            proxy async throws in
            var times: [Range<UInt64>] = []
            // Longer than the first back-off pause: no client request serves as a probe.
            let end = monotonicNanoseconds() + 3_500_000_000
            while monotonicNanoseconds() < end {
                let start = monotonicNanoseconds()
                let response = try await proxy.request("/\(times.count)")
                #expect(response.status == 200 && response.text == "alive")
                times.append(start..<monotonicNanoseconds())
            }
            await pause(milliseconds: 20)
            // The limit ends also while the machine is stopped, and a stop is no wait.
            let slowest = Duration.nanoseconds(times.map(\.count).max() ?? 0)
            let waits = times.map { Duration.nanoseconds(Int64(witness.busyNanoseconds($0))) }
            #expect(slowest > Self.connectTime * 0.8 && times.count > 20)
            #expect(waits.count { $0 > Self.connectTime * 0.8 } <= 1)
            #expect(waits.allSatisfy { $0 < Self.connectTime * 3 })
        }
    }

    /// Content that can be read only once goes to the reachable origin.
    @Test func uploadIsNotLostToAnOriginThatSwallowsConnections() async throws {
        let mute = try MuteListener()
        let alive = try WireOrigin { request, socket in
            try socket.answer(200, [], String(decoding: request.body, as: UTF8.self))
        }
        defer {
            mute.stop()
            alive.stop()
        }
        try await withProxy(origins: [mute.port, alive.port], configure: Self.configure) {
            proxy async throws in
            for _ in 0..<4 {
                let response = try await proxy.request("/", method: "POST", body: "hello")
                #expect(response.status == 200 && response.text == "hello")
            }
            #expect(alive.count == 4)
        }
    }

    @Test func originThatCannotBeReachedIsFoundAgainWithoutARequest() async throws {
        let mute = try MuteListener()
        let alive = try Self.alive()
        defer { alive.stop() }
        try await withProxy(origins: [mute.port, alive.port], configure: Self.configure) {
            proxy async throws in
            for number in 0..<2 { _ = try await proxy.request("/\(number)") }
            let pool = proxy.service.pool
            #expect(pool.members.map { $0.downUntil == nil } == [false, true])
            mute.stop()
            let back = try WireOrigin(port: mute.port) { _, socket in
                try socket.answer(200, [], "back")
            }
            defer { back.stop() }
            #expect(await eventually { pool.members.allSatisfy { $0.downUntil == nil } })
            #expect(back.count == 0)
            for number in 2..<6 { _ = try await proxy.request("/\(number)") }
            #expect(back.count == 2)
        }
    }

    /// A client that stops sending does not count as a fault of the origin.
    @Test func clientsThatStopSendingTakeNoOriginOut() async throws {
        let witness = StallWitness()
        let watching = Task { await witness.watch() }
        defer { watching.cancel() }
        var statuses: [Int] = []
        var (outCount, attempts) = (0, 0)
        var stalled: UInt64
        // If the machine stops for half a limit, an origin may seem to have stopped.
        repeat {
            let start = monotonicNanoseconds()
            (statuses, outCount) = try await Self.stopUploads()
            await pause(milliseconds: 20)
            let time = start..<monotonicNanoseconds()
            stalled = UInt64(time.count) - witness.busyNanoseconds(time)
            attempts += 1
        } while stalled > 500_000_000 && attempts < 5
        #expect(statuses == [Int](repeating: 504, count: 8))
        #expect(outCount == 0, "\(stalled) ns stalled")
    }

    /// Eight clients stop in their uploads; returns the statuses that they get, and the number of
    /// origins that are left out.
    private static func stopUploads() async throws -> (statuses: [Int], outCount: Int) {
        let origins = try (0..<2).map { _ in try alive() }
        defer { for origin in origins { origin.stop() } }
        return try await withProxy(
            origins: origins.map(\.port),
            configure: { $0.betweenBytesTime = .seconds(1) }
        ) { proxy async throws in
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<8 {
                    let client = try proxy.client()
                    group.addTask {
                        try await client.exchange(
                            "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nab"
                        ).status
                    }
                }
                return try await group.reduce(into: [Int]()) { $0.append($1) }
            }
            return (statuses, proxy.service.pool.members.count { $0.downUntil != nil })
        }
    }

    @Test func withNoOriginReachableEachIsTriedAndTheAnswerIs502() async throws {
        let gone = try (0..<2).map { _ in try Self.alive() }
        for origin in gone { origin.stop() }
        try await withProxy(origins: gone.map(\.port)) { proxy async throws in
            for number in 0..<3 { #expect(try await proxy.request("/\(number)").status == 502) }
            let back = try WireOrigin(port: gone[0].port) { _, socket in
                try socket.answer(200, [], "back")
            }
            defer { back.stop() }
            // A proxy that refused without a connection attempt would stay down longer than its
            // origins.
            #expect(try await proxy.request("/back").text == "back")
        }
    }
}
