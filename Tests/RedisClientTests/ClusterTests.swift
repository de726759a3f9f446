import CacheTestSupport
import Platform
import RESP
import Testing

@testable import RedisClient

/// The client against scripted servers that redirect.
@Suite(.timeLimit(.minutes(1))) struct ClusterTests {
    private func get(_ key: String, _ client: RedisClient) async throws -> String? {
        try await client.send(RESPCommand("GET", key: key)).text
    }

    @Test func movedSlotIsFollowedAndRemembered() async throws {
        let cluster = try FakeCluster(2)
        cluster.change { $0.owners = ["a": 1] }
        let client = try cluster.client()
        #expect(try await get("a", client) == "1")
        #expect(client.counts.redirections == 1)
        #expect(try await get("b", client) == "0")
        #expect(try await get("a", client) == "1")
    }

    @Test func manyRedirectionsAskForTheSlotsOnce() async throws {
        let cluster = try FakeCluster(3)
        cluster.change { state in
            for number in 0..<400 { state.owners["k\(number)"] = 1 + number % 2 }
        }
        let client = try cluster.client()
        let started = monotonicNanoseconds()
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for number in 0..<400 {
                tasks.addTask {
                    let text = try await get("k\(number)", client)
                    #expect(text == "\(1 + number % 2)")
                }
            }
            try await tasks.waitForAll()
        }
        let seconds = Int((monotonicNanoseconds() - started) / 1_000_000_000)
        #expect(client.counts.refreshes <= 1 + seconds)
        #expect(cluster.current.questions.count <= 1 + seconds)
        #expect(client.counts.redirections > 300)
    }

    @Test func askIsFollowedBehindAskingAndOnce() async throws {
        let cluster = try FakeCluster(2)
        cluster.change { $0.askedAt = ["a": 1] }
        let client = try cluster.client()
        for _ in 0..<2 { #expect(try await get("a", client) == "1") }
        let commands = cluster.current.commands.filter { !$0.hasSuffix("SLOTS") }
        let once = ["0: GET a", "1: ASKING", "1: GET a"]
        #expect(commands == once + once)
    }

    /// A command without a key follows those before it, also through redirections.
    @Test func commandsThatBelongTogetherStayTogether() async throws {
        let cluster = try FakeCluster(3)
        let client = try cluster.client()
        let commands = [
            RESPCommand("GET", key: "a"), RESPCommand("GET", key: "a"),
            RESPCommand("WAIT", key: nil, "1", "50"),
        ]
        for (owner, asked, replies) in [(0, nil, 0), (1, nil, 1), (1, 2, 2)] as [(Int, Int?, Int)] {
            cluster.change { state in
                state.owners["a"] = owner
                state.askedAt["a"] = asked
                state.commands = []
            }
            let all = try await client.together(commands, by: Array("a".utf8), lane: .appending)
            #expect(
                all == [.simple("\(replies)"), .simple("\(replies)"), .integer(Int64(replies))]
            )
            let last = cluster.current.commands.filter { !$0.hasSuffix("SLOTS") }.suffix(1)
            #expect(last == ["\(replies): WAIT 1 50"])
        }
        cluster.change { $0.redirectsForEver = true }
        let error = await #expect(throws: RedisError.self) {
            try await client.together(commands, by: Array("a".utf8))
        }
        #expect(error?.code == .redirected)
    }

    /// The keys of a slot that is being moved are at two servers, and a group may need both.
    @Test(arguments: [true, false])
    func redirectedCommandOfAGroupGoesAlone(isAsked: Bool) async throws {
        let cluster = try FakeCluster(2)
        cluster.change { state in
            if isAsked { state.askedAt["{a}2"] = 1 } else { state.owners["{a}2"] = 1 }
        }
        let client = try cluster.client()
        let wait = RESPCommand("WAIT", key: nil, "1", "50")
        let commands = [
            RESPCommand("SET", key: "{a}1", "x"), RESPCommand("GET", key: "{a}2"), wait,
            RESPCommand("SET", key: "{a}3", "y"), wait, RESPCommand("GET", key: "{a}2"),
        ]
        let replies = try await client.together(commands, by: Array("a".utf8))
        #expect(
            replies == [
                .simple("0"), .simple("1"), .integer(1), .simple("0"), .integer(0), .simple("1"),
            ]
        )
        let sent = cluster.current.commands.filter { !$0.hasSuffix("SLOTS") }
        let asking = isAsked ? ["1: ASKING"] : []
        #expect(
            sent == [
                "0: SET {a}1 x", "0: GET {a}2", "0: WAIT 1 50", "0: SET {a}3 y", "0: WAIT 1 50",
                "0: GET {a}2",
            ] + asking + ["1: GET {a}2", "1: WAIT 1 50"] + asking + ["1: GET {a}2"]
        )
        #expect(client.counts.redirections == 2)
    }

    @Test func redirectionsAreLimited() async throws {
        let cluster = try FakeCluster(2)
        cluster.change { $0.redirectsForEver = true }
        let client = try cluster.client()
        #expect(await client.code() == .redirected)
        #expect(client.counts.redirections == 4)
        #expect(cluster.current.commands.filter { $0.hasSuffix("GET k") }.count == 4)
    }

    @Test func everyKeyIsFoundWhereverItsSlotIs() async throws {
        let cluster = try FakeCluster(3)
        cluster.change { state in
            state.named = [0, 1, 2]
            for number in 0..<300 {
                let slot = Int(KeySlot.slot(of: Array("k\(number)".utf8)))
                // One key in ten is not where CLUSTER SLOTS says, and another one is being moved.
                let owner = (min(2, slot / 5_461) + (number % 10 == 0 ? 1 : 0)) % 3
                state.owners["k\(number)"] = owner
                if number % 10 == 5 { state.askedAt["k\(number)"] = (owner + 1) % 3 }
            }
        }
        let client = try cluster.client()
        let isKnown = await eventually {
            _ = await client.code()
            return cluster.servers.count == 3 && !cluster.current.questions.isEmpty
        }
        #expect(isKnown)
        let state = cluster.current
        let replies = try await client.replies(
            (0..<300).map { RESPCommand("GET", key: "k\($0)") }
        )
        for (number, reply) in replies.enumerated() {
            let key = "k\(number)"
            #expect(
                reply.text == state.askedAt[key].map(String.init) ?? "\(state.owners[key] ?? 0)"
            )
        }
    }

    @Test func otherServersAreAskedWhenAMasterIsGone() async throws {
        let cluster = try FakeCluster(3)
        cluster.change { $0.named = [0, 1] }
        let client = try cluster.client(seed: 2)
        let isKnown = await eventually { (try? await get("{a}", client)) != nil }
        #expect(isKnown)
        // The slots of the first server go to the second one.
        cluster.servers[0].stop()
        cluster.change { state in
            state.named = [1]
            for number in 0..<50 { state.owners["k\(number)"] = 1 }
        }
        for number in 0..<50 {
            let isServed = await eventually { (try? await get("k\(number)", client)) == "1" }
            #expect(isServed)
        }
        #expect(client.counts.refreshes < 25)
    }
}
