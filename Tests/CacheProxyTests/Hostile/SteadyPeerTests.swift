import CacheEngine
import CacheTestSupport
import Platform
import Testing

@testable import CacheProxy

/// Peers that read slowly and without a pause, while the system holds megabytes for them (X22).
///
/// It reports their sockets as writable only when a third of its buffer is free, which takes such a
/// peer longer than the limit for a pause.
@Suite struct SteadyPeerTests {
    /// A larger buffer of the peer, once full, tells that it was read only after a second or two.
    private static let receiveBytes: Int32 = 32 << 10
    /// What a peer takes at once, so that the system gives its connection a large buffer.
    private static let bytesAtOnce = 3 << 20
    /// The pieces that it takes then, and the time between two of them.
    private static let (pieceBytes, pieceCount) = (32 << 10, 20)
    private static let pauseMilliseconds: Int32 = 100

    /// Repeats an attempt that failed, if the machine stopped it for half a limit.
    private static func attempt(_ body: () async throws -> Bool) async throws -> Bool {
        let witness = StallWitness()
        let watching = Task { await witness.watch() }
        defer { watching.cancel() }
        for _ in 0..<5 {
            let start = monotonicNanoseconds()
            if try await body() { return true }
            await pause(milliseconds: 20)
            let time = start..<monotonicNanoseconds()
            let stalled = UInt64(time.count) - witness.busyNanoseconds(time)
            if stalled < 500_000_000 { return false }
        }
        return false
    }

    /// Takes `count` bytes, in the end as fast as it can; returns whether they are there.
    private static func take(_ count: Int, from socket: WireSocket) async -> Bool {
        let result = try? await onThread {
            guard try socket.read(exactly: Self.bytesAtOnce) != nil else { return false }
            for _ in 0..<Self.pieceCount {
                poll(nil, 0, Self.pauseMilliseconds)
                guard try socket.read(exactly: Self.pieceBytes) != nil else { return false }
            }
            let rest = count - Self.bytesAtOnce - Self.pieceCount * Self.pieceBytes
            return try socket.read(exactly: rest) != nil
        }
        return result ?? false
    }

    /// The body is larger than what the buffers of both sides take.
    @Test func clientThatReadsSteadilyIsNotCutAndOneThatReadsNothingIs() async throws {
        let body = ByteChunk([UInt8](repeating: 7, count: 16 << 20))
        let responder = ScriptedResponder.hot { _ in
            CacheResponse(status: 200, body: BodyStream(body))
        }
        let isTaken = try await Self.attempt {
            try await withServer(responder, configure: { $0.timeouts.write = .seconds(1) }) {
                server in
                let silent = try WireClient(server.port, receiveBytes: 16 << 10)
                try await silent.send(ServerTests.get)
                let steady = try WireClient(server.port, receiveBytes: Self.receiveBytes)
                try await steady.send(ServerTests.get)
                _ = try await onThread { try steady.socket.read(through: "\r\n\r\n") }
                let isWhole = await Self.take(body.count, from: steady.socket)
                #expect(await eventually { server.counters[0][.timeouts] > 0 })
                return isWhole && server.counters[0][.timeouts] == 1
            }
        }
        #expect(isTaken)
    }

    /// A few bytes for each limit do not keep a place.
    @Test func clientThatTakesFewBytesIsCut() async throws {
        let body = ByteChunk([UInt8](repeating: 7, count: 16 << 20))
        let responder = ScriptedResponder.hot { _ in
            CacheResponse(status: 200, body: BodyStream(body))
        }
        try await withServer(responder, configure: { $0.timeouts.write = .seconds(1) }) { server in
            let slow = try WireClient(server.port, receiveBytes: 4 << 10)
            try await slow.send(ServerTests.get)
            // About 7 KiB in a second: no second passes in which the system sends nothing.
            let reading = Task {
                let atOnce = Int32(truncatingIfNeeded: Int(MSG_DONTWAIT))
                var piece = [UInt8](repeating: 0, count: 2 << 10)
                while !Task.isCancelled {
                    _ = recv(slow.socket.descriptor, &piece, piece.count, atOnce)
                    await pause(milliseconds: 300)
                }
            }
            #expect(await eventually { server.counters[0][.timeouts] == 1 })
            reading.cancel()
            await reading.value
            #expect(await eventually { server.counters[0][.connectionsOpen] == 0 })
        }
    }

    #if os(Linux)
        /// The system counts the pieces that the peer has not read whole, and what they take.
        @Test func progressIsMeasuredAgainstAFloor() throws {
            let (near, far) = try Self.pair()
            defer {
                close(near)
                close(far)
            }
            var piece = [UInt8](repeating: 1, count: 1 << 10)
            func write(_ count: Int) {
                for _ in 0..<count { #expect(send(near, piece, piece.count, 0) == piece.count) }
            }
            func read(_ count: Int) {
                for _ in 0..<count { #expect(recv(far, &piece, piece.count, 0) == piece.count) }
            }
            var progress = SendProgress()
            let floor: Int32 = 16 << 10
            func hasAdvanced(byAtLeast floor: Int32) -> Bool {
                progress.hasAdvanced(near, byAtLeast: floor)
            }
            #expect(!SendProgress.isKnownToHoldBytes(near))
            write(50)
            #expect(SendProgress.isKnownToHoldBytes(near))
            progress.begin(near)
            #expect(!hasAdvanced(byAtLeast: floor))
            for _ in 0..<3 {
                read(1)
                #expect(!hasAdvanced(byAtLeast: floor))
            }
            read(1)
            #expect(hasAdvanced(byAtLeast: 1))
            read(40)
            #expect(hasAdvanced(byAtLeast: floor))
            // Less than the floor is left: then all of it counts.
            read(5)
            progress.begin(near)
            #expect(!hasAdvanced(byAtLeast: floor))
            read(1)
            #expect(hasAdvanced(byAtLeast: floor))
            #expect(!progress.holdsBytes && !SendProgress.isKnownToHoldBytes(near))
            #expect(!hasAdvanced(byAtLeast: floor))
            // Without a socket the system does not tell.
            #expect(!SendProgress.isKnownToHoldBytes(-1))
            progress.begin(-1)
            let hasAdvancedThere = progress.hasAdvanced(-1, byAtLeast: floor)
            #expect(progress.holdsBytes && !hasAdvancedThere)
        }

        private static func pair() throws -> (Int32, Int32) {
            var ends: [Int32] = [-1, -1]
            guard socketpair(AF_UNIX, streamSocketType, 0, &ends) == 0 else {
                throw WireFailure("socketpair: \(errno)")
            }
            return (ends[0], ends[1])
        }
    #endif

    /// Of the smaller content the system soon holds the rest, and the limit for the response runs.
    @Test(arguments: UpstreamKind.allCases)
    func originThatReadsSteadilyIsNotLate(kind: UpstreamKind) async throws {
        let isAnswered = try await Self.attempt {
            async let large = Self.isAnswered(16 << 20, kind)
            async let small = Self.isAnswered(5 << 20, kind)
            let answered = try await (large, small)
            return answered.0 && answered.1
        }
        #expect(isAnswered)
    }

    /// Whether an upload of `count` bytes is answered, and the origin counts as sound.
    private static func isAnswered(_ count: Int, _ kind: UpstreamKind) async throws -> Bool {
        let (listener, port) = try WireSocket.listening(waiting: 1, receiveBytes: receiveBytes)
        defer { close(listener) }
        return try await withProxy(
            origins: [port],
            configure: {
                $0.firstByteTime = .seconds(1)
                $0.betweenBytesTime = .seconds(1)
            },
            upstream: kind.make
        ) { proxy async throws in
            let client = try proxy.client()
            let head = "PUT /u HTTP/1.1\r\nHost: x\r\nContent-Length: \(count)\r\n\r\n"
            let content = String(repeating: "x", count: count)
            async let answer = client.exchange(head + content)
            let origin = try await onThread { try WireSocket.accepted(by: listener) }
            _ = try await onThread { try origin.read(through: "\r\n\r\n") }
            if await take(count, from: origin) {
                _ = try? await onThread { try origin.answer(200, [], "taken") }
            }
            let status = try? await answer.status
            return status == 200 && proxy.service.pool.members.allSatisfy { $0.isSound }
        }
    }
}
