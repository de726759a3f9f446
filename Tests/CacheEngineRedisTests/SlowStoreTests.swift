import CacheEngine
import CacheTestSupport
import Platform
import RedisTestSupport
import Testing

@testable import CacheEngineRedis

/// R20: a shared store that answers late, or byte by byte.
@Suite(
    .enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"),
    .timeLimit(.minutes(5)),
    .serialized
)
struct SlowStoreTests {
    /// The time that half of the requests may lose: twice their limit, for a slow machine.
    ///
    /// `LookBudgetTests` counts the time of each command.
    private static let medianNanosecondsMax: UInt64 = 120_000_000
    /// The time that few may lose: half of the latest reply.
    private static let longNanoseconds: UInt64 = 500_000_000
    private static let countOfKind = 4

    /// How late a server answers, and how many requests ask it at once.
    struct Slowness: Sendable {
        let pace: Relay.Pace
        let callers: Int

        init(_ milliseconds: Int32, pieceBytes: Int = .max, callers: Int = 4) {
            pace = Relay.Pace(milliseconds: milliseconds, pieceBytes: pieceBytes)
            self.callers = callers
        }
    }

    /// One caller after another has replies just before their limit; replies to four wait for each
    /// other.
    private static let slownesses = [
        Slowness(1), Slowness(1, pieceBytes: 1), Slowness(5, pieceBytes: 100),
        Slowness(12, callers: 1), Slowness(17, callers: 1), Slowness(23, callers: 1),
        Slowness(100), Slowness(1_000),
    ]

    /// Responses that vary have paths of their own; each body names path and variant.
    private static func origin() -> ScriptedOrigin {
        ScriptedOrigin { request, _ in
            let varies = request.url.contains("/vary")
            return .whole(
                fields: ["Cache-Control": "max-age=3600", "Vary": varies ? "Accept" : ""],
                body: text(request.url, varies ? request.fields["Accept"] : nil)
            )
        }
    }

    private static func text(_ url: String, _ accept: String?) -> String {
        "\(url) \(accept ?? "") " + String(repeating: "x", count: 500)
    }

    /// Every kind of request: stored or not on another machine, varying or not.
    ///
    /// A variant that is missing beside one that is stored takes three commands.
    private static let requests = (0..<countOfKind).flatMap { number in
        [
            ("/stored", "a"), ("/missing", "a"), ("/vary-stored", "a"), ("/vary-missing", "a"),
            ("/vary-other-stored", "b"),
        ]
        .map { (path: "\($0)/\(number)", accept: $1) }
    }

    @Test(arguments: slownesses)
    func slowServerDelaysNoRequest(_ slowness: Slowness) async throws {
        let (pace, callers) = (slowness.pace, slowness.callers)
        let redis = try await RedisProcess()
        let relay = try Relay(to: redis.port)
        let origin = Self.origin()
        let here = try await Machine.sharing(redis.url, origin)
        let stored = Set(Self.requests.map(\.path)).filter { $0.contains("stored") }
        for path in stored { _ = try await here.answer(path, ["Accept": "a"]) }
        #expect(await eventually { await here.counts.published >= stored.count })
        let there = try await Machine.sharing(
            relay.url,
            origin,
            patience: FleetSurroundings.Patience()
        )
        // Its connection is made before the server is slow.
        _ = try await there.answer("/first")
        let before = origin.count
        let witness = StallWitness()
        relay.slow(pace)
        let watching = Task { await witness.watch() }
        let losses = try await withThrowingTaskGroup(of: [UInt64].self) { group in
            for caller in 0..<callers {
                group.addTask {
                    var losses: [UInt64] = []
                    for number in stride(from: caller, to: Self.requests.count, by: callers) {
                        let (path, accept) = Self.requests[number]
                        let start = monotonicNanoseconds()
                        let response = try await there.answer(path, ["Accept": accept])
                        let body = try await response.body.collectText()
                        losses.append(witness.busyNanoseconds(start..<monotonicNanoseconds()))
                        let varies = path.hasPrefix("/vary")
                        let url = Machine.host + path
                        #expect(body == Self.text(url, varies ? accept : nil))
                    }
                    return losses
                }
            }
            var losses: [UInt64] = []
            for try await some in group { losses += some }
            return losses
        }
        watching.cancel()
        let worst = try #require(losses.max())
        let counts = await there.counts
        print(
            "replies \(pace.milliseconds) ms late"
                + (pace.pieceBytes == .max ? ": " : ", in pieces of \(pace.pieceBytes) bytes: ")
                + "\(counts.sharedHits) shared hits, \(counts.sharedFailures) failures, "
                + "at most \(worst / 1_000) us lost"
        )
        #expect(losses.count == Self.requests.count)
        let median = losses.sorted()[losses.count / 2]
        #expect(median <= Self.medianNanosecondsMax, "\(losses)")
        let longCount = losses.count { $0 > Self.longNanoseconds }
        #expect(longCount <= losses.count / 4, "\(losses)")
        #expect(origin.count <= before + Self.requests.count)
        if pace.milliseconds == 1_000 { try await isUsedAgain(relay, here, there) }
        for machine in [here, there] { await machine.cache.shutDown() }
    }

    /// A server that is quick again is used again.
    private func isUsedAgain(_ relay: Relay, _ here: Machine, _ there: Machine) async throws {
        relay.slow(nil)
        var number = 0
        let isUsed = await eventually {
            number += 1
            let published = await here.counts.published
            _ = try? await here.answer("/later/\(number)")
            _ = await eventually { await here.counts.published > published }
            return (try? await there.answer("/later/\(number)").info.tier) == .shared
        }
        #expect(isUsed)
    }
}
