import CacheEngine
import CacheTestSupport
import RESP
import RedisClient
import Synchronization
import Testing

@testable import CacheEngineRedis
@testable import Simulation

/// The writer of the log while its server refuses purges for a while, or does not answer.
@Suite(.timeLimit(.minutes(5)))
struct PurgeLogWriterTests {
    private static let keys = LogKeys(namespace: "t")

    private let server = LaneServer()
    private let counts = FleetCounts()

    private func makeWriter() -> PurgeLogWriter {
        PurgeLogWriter(server, FleetSurroundings(), Self.keys, at: LaneServer.address, counts)
    }

    /// The purges in the log, in its order.
    private var appended: [FleetPurge] { server.appended(Self.keys) }

    /// One key of the log may be at the old server of their slot, and the other at the new one.
    @Test func appendIsRepeatedWhileTheLogIsBeingMoved() async throws {
        let writer = makeWriter()
        server.refuse(2, "TRYAGAIN Multiple keys request during rehashing of slot")
        let purges = [FleetPurge(1), FleetPurge(2), FleetPurge(3)]
        let receipt = try await writer.append(purges)
        // A purge that is appended twice is applied once.
        #expect(appended == [FleetPurge(1)] + purges)
        #expect(receipt.position == FleetPosition(1, 4).rawValue)
        #expect(counts.appended.load(ordering: .relaxed) == 3)
    }

    /// Two servers of a cluster name each other while one of them gives a slot away.
    @Test func appendIsRepeatedWhileServersRedirectToEachOther() async throws {
        let writer = makeWriter()
        server.fail(2, .redirected)
        let receipt = try await writer.append([FleetPurge(1)])
        #expect(appended == [FleetPurge(1)])
        #expect(receipt.position == FleetPosition(1, 1).rawValue)
    }

    /// A server that has not seen the script is asked twice.
    @Test func bothAttemptsHaveOneSecond() async throws {
        let clock = TestClock()
        let surroundings = FleetSurroundings(clock: clock)
        let writer = PurgeLogWriter(
            server,
            surroundings,
            Self.keys,
            at: LaneServer.address,
            counts
        )
        server.hold(.appending) { _ in true }
        let receipt = Task { try await writer.append([FleetPurge(1)]) }
        #expect(await eventually { server.isHolding })
        clock.advance(seconds: 0.75)
        server.release(.appending)
        _ = try await receipt.value
        #expect(server.names == ["EVALSHA", "WAIT", "EVAL", "WAIT"])
        #expect(server.limits == [.seconds(1), .milliseconds(250)])
    }

    /// A log that is never in one place again costs its callers a second and an error.
    @Test func appendThatIsRefusedForLongIsAnError() async throws {
        let writer = makeWriter()
        server.refuse(.max, "TRYAGAIN Multiple keys request during rehashing of slot")
        let error = await #expect(throws: RedisError.self) {
            try await writer.append([FleetPurge(1), FleetPurge(2)])
        }
        #expect(error?.code == .tryAgain)
        #expect(counts.refused.load(ordering: .relaxed) == 2)
    }

    /// The first purge is at a server that was replaced before the second one came; the replicas that
    /// the new server asks do not have it.
    @Test func purgesThatTwoServersTookAreSentAgain() async throws {
        let writer = makeWriter()
        _ = try await writer.append([FleetPurge(1)])
        server.model.replicate()
        server.model.forgetScripts()
        server.failOverBehindTheNextScript()
        let receipt = try await writer.append([FleetPurge(2), FleetPurge(3)])
        #expect(appended == [1, 3, 2, 3].map { FleetPurge($0) })
        #expect(receipt.position == FleetPosition(2, 3).rawValue)
    }

    /// The server that was the master before comes back without the log's end: its run ID is the old
    /// one.
    @Test func formerMasterThatComesBackBeginsAnEpoch() async throws {
        let writer = makeWriter()
        let first = try await writer.append([FleetPurge(1)])
        #expect(first.position == FleetPosition(1, 1).rawValue)
        server.model.replicate()
        _ = try await writer.append([FleetPurge(2)])
        server.model.failOver(oldServesOn: false)
        server.model.failOver(oldServesOn: false, formerReturns: true)
        let third = try await writer.append([FleetPurge(3)])
        #expect(third.position == FleetPosition(2, 1).rawValue)
        #expect(appended == [FleetPurge(1), FleetPurge(3)])
    }

    /// Two servers are lost in a row, and the reader has seen neither.
    @Test func epochOfAReceiptIsNotBegunAgain() async throws {
        let writer = makeWriter()
        _ = try await writer.append([FleetPurge(1)])
        server.model.replicate()
        for number in 2...4 as ClosedRange<UInt64> {
            server.model.failOver(oldServesOn: false)
            let receipt = try await writer.append([FleetPurge(Int(number))])
            #expect(receipt.position == FleetPosition(number, 1).rawValue)
        }
    }

    /// A caller may block every thread of Swift's pool until its purge is in the log.
    @Test func purgeThatABlockedThreadWaitsForIsSentOnItsExecutor() async throws {
        let executor = ThreadExecutor()
        defer { executor.stop() }
        let writer = makeWriter()
        let fromElsewhere = try await Task(executorPreference: executor) {
            try await AwaitedWork.$executor.withValue(executor) {
                let before = executor.counts.fromElsewhere
                _ = try await writer.append([FleetPurge(1)])
                return executor.counts.fromElsewhere - before
            }
        }.value
        #expect(fromElsewhere == 0)
        #expect(appended == [FleetPurge(1)])
    }

    /// Lost purges that are appended again together may be longer than what may wait.
    @Test func longPurgesAreTakenIfNoOtherWaits() async throws {
        let writer = makeWriter()
        let purges = (0..<256).map { Self.purge($0, bytes: 1 << 16) }
        _ = try await writer.append(purges)
        #expect(appended.count == 256)
    }

    /// Jobs for a server that does not answer: how many purges each has, and how long their tags are.
    struct Crowd: Sendable {
        let purges: Int
        let bytes: Int
        /// The jobs that may wait.
        let waiting: Int
    }

    @Test(arguments: [
        Crowd(purges: 256, bytes: 4, waiting: 16), Crowd(purges: 1, bytes: 1 << 20, waiting: 15),
    ])
    func purgesBeyondTheLimitAreRefusedAndTheOthersKeepTheirOrder(_ crowd: Crowd) async throws {
        let writer = makeWriter()
        server.hold(.appending) { _ in true }
        let jobs = (0..<crowd.waiting + 5).map { job in
            (0..<crowd.purges).map { Self.purge(job * crowd.purges + $0, bytes: crowd.bytes) }
        }
        // Each task runs until it waits, so the jobs come in their order.
        let first = Task.immediate { await Self.code(of: writer, jobs[0]) }
        #expect(await eventually { server.isHolding })
        // The first job is under way, and does not wait for its turn.
        let others = jobs.dropFirst().map { job in
            Task.immediate { await Self.code(of: writer, job) }
        }
        let refused = jobs.count - crowd.waiting - 1
        let areRefused = await eventually {
            counts.refused.load(ordering: .relaxed) == refused * crowd.purges
        }
        #expect(areRefused)
        server.release(.appending)
        for (number, task) in ([first] + others).enumerated() {
            #expect(await task.value == (number > crowd.waiting ? .overloaded : nil))
        }
        #expect(appended.map(\.id) == jobs.prefix(crowd.waiting + 1).flatMap { $0.map(\.id) })
        // There is room again.
        _ = try await writer.append(jobs[0])
    }

    /// The code of the error that an append ends with; `nil` if it has a receipt.
    private static func code(
        of writer: PurgeLogWriter,
        _ purges: [FleetPurge]
    ) async -> RedisError.Code? {
        do throws(RedisError) { _ = try await writer.append(purges) } catch { return error.code }
        return nil
    }

    private static func purge(_ number: Int, bytes: Int) -> FleetPurge {
        let value = [UInt8](repeating: 0x61, count: bytes)
        return FleetPurge(
            id: FleetPurge.ID(number),
            purge: SharedPurge(.key(value), isSoft: false)
        )
    }
}
