import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

/// H18, X19: the refresh of stored parts, and their end.
@Suite struct PartRefreshTests {
    private static let lines: HeaderFields = [
        "Cache-Control": "max-age=1, stale-while-revalidate=600", "ETag": "\"1\"",
    ]

    /// A whole of 3 MiB, which the memory of a stage has no room for.
    private static let wholeBytes = 3 << 20

    /// An origin of a large resource, which answers conditions if `evaluates`, and has another tag
    /// from request number `changesAt` on.
    private static func origin(
        evaluates: Bool = true,
        changesAt: Int = .max
    ) -> ScriptedOrigin {
        let count = Mutex(0)
        return ScriptedOrigin { request, _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            var fields = lines
            if number >= changesAt { fields["ETag"] = "\"2\"" }
            let letter = number >= changesAt ? "n" : "o"
            if evaluates, request.fields["If-None-Match"] == fields["ETag"] {
                return OriginResponse(status: 304, fields: fields)
            }
            let bounds = request.fields["Range"]?.dropFirst(6).split(separator: "-")
                .compactMap { Int($0) }
            guard let bounds, bounds.count == 2 else {
                return .whole(fields: fields, body: String(repeating: letter, count: wholeBytes))
            }
            fields["Content-Range"] = "bytes \(bounds[0])-\(bounds[1])/\(wholeBytes)"
            let size = bounds[1] - bounds[0] + 1
            return .whole(status: 206, fields: fields, body: String(repeating: letter, count: size))
        }
    }

    private static func stage(
        _ origin: ScriptedOrigin,
        _ rangeMiss: CachingRules.RangeMiss = .partOnly
    ) async throws -> Stage {
        try await Stage(origin) {
            $0.memory = .megabytes(2)
            $0.caching.rangeMiss = rangeMiss
        }
    }

    private func part(_ stage: Stage, _ range: String = "bytes=0-9") async throws -> Answer {
        try await stage.get(Stage.url, ["Range": range])
    }

    @Test("X19: the refresh of a part asks for the part", arguments: [true, false])
    func refreshAsksForThePart(evaluates: Bool) async throws {
        let stage = try await Self.stage(Self.origin(evaluates: evaluates))
        #expect(try await part(stage).source == .origin)
        for round in 1...3 {
            stage.clock.advance(seconds: 2)
            #expect(try await part(stage).source == .stale)
            #expect(try await part(stage).source == .fresh, "round \(round)")
            #expect(stage.origin.count == 1 + round)
            let sent = try #require(stage.origin.requests.last)
            #expect(sent.fields["Range"] == "bytes=0-9")
            #expect(sent.fields["If-None-Match"] == "\"1\"")
        }
        let statistics = await stage.cache.statistics
        #expect(statistics.refreshes == 3 && statistics.refreshFailures == 0)
        await stage.end()
    }

    @Test("X19: a confirmation refreshes all parts, also for HEAD and for several ranges")
    func confirmationRefreshesAllParts() async throws {
        let stage = try await Self.stage(Self.origin())
        _ = try await part(stage, "bytes=0-9")
        _ = try await part(stage, "bytes=100-109")
        let before = stage.origin.count
        stage.clock.advance(seconds: 2)
        #expect(try await part(stage, "bytes=0-1,100-101").source == .stale)
        #expect(try await part(stage, "bytes=100-109").source == .fresh)
        #expect(try await part(stage, "bytes=0-9").source == .fresh)
        #expect(stage.origin.count == before + 1)
        #expect(stage.origin.requests.last?.fields["Range"] == "bytes=0-1")
        await stage.end()
    }

    @Test("X19: a part of another version takes the place of the stored ones")
    func refreshBringsANewVersion() async throws {
        let stage = try await Self.stage(Self.origin(changesAt: 2))
        #expect(try await part(stage).body == "oooooooooo")
        stage.clock.advance(seconds: 2)
        #expect(try await part(stage).source == .stale)
        let fresh = try await part(stage)
        #expect(fresh.source == .fresh)
        #expect(fresh.body == "nnnnnnnnnn")
        #expect(stage.origin.count == 2)
        await stage.end()
    }

    @Test("X19: a whole that is too large is fetched neither behind its parts nor to refresh them")
    func wholeThatIsTooLargeIsNotFetched() async throws {
        let stage = try await Self.stage(Self.origin(evaluates: false), .wholeBehind)
        for _ in 1...5 {
            _ = try await part(stage)
            stage.clock.advance(seconds: 2)
        }
        #expect(stage.origin.count == 5)
        #expect(stage.origin.requests.allSatisfy { $0.fields.contains("Range") })
        await stage.end()
    }

    @Test("H18: a refresh of parts that wants the whole asks for it without a condition")
    func wholeBehindStalePartsIsFetched() async throws {
        let origin = ScriptedOrigin { request, number in
            if number == 2 { return .whole(status: 503, body: "later") }
            if request.fields["If-None-Match"] != nil {
                return OriginResponse(status: 304, fields: Self.lines)
            }
            guard request.fields.contains("Range") else {
                return .whole(fields: Self.lines, body: "once")
            }
            var part = Self.lines
            part["Content-Range"] = "bytes 0-1/4"
            return .whole(status: 206, fields: part, body: "on")
        }
        let stage = try await Self.stage(origin, .wholeBehind)
        #expect(try await part(stage, "bytes=0-1").body == "on")
        #expect(stage.origin.count == 2)
        stage.clock.advance(seconds: 30)
        #expect(try await part(stage, "bytes=0-1").source == .stale)
        #expect(stage.origin.count == 3)
        let whole = try await stage.get()
        #expect(whole.source == .fresh && whole.body == "once")
        await stage.end()
    }

    @Test("H18: parts that the next version does not have are replaced by the whole")
    func partsThatAreGoneAreReplaced() async throws {
        var next = Self.lines
        next["ETag"] = "\"2\""
        let origin = ScriptedOrigin { [next] request, number in
            if number == 1 {
                var part = Self.lines
                part["Content-Range"] = "bytes 10-11/12"
                return .whole(status: 206, fields: part, body: "on")
            }
            guard request.fields.contains("Range") else { return .whole(fields: next, body: "new") }
            return .whole(status: 416, fields: ["Content-Range": "bytes */3"])
        }
        let stage = try await Self.stage(origin)
        #expect(try await part(stage, "bytes=10-11").body == "on")
        stage.clock.advance(seconds: 2)
        #expect(try await part(stage, "bytes=10-11").source == .stale)
        #expect(stage.origin.count == 3)
        let whole = try await stage.get()
        #expect(whole.source == .fresh && whole.body == "new")
        #expect(try await part(stage, "bytes=10-11").status == 416)
        await stage.end()
    }

    @Test("X19: a refresh that brings a tiny part makes all parts fresh")
    func tinyPartOfARefreshIsJoined() async throws {
        let stage = try await Self.stage(Self.origin(evaluates: false))
        _ = try await part(stage, "bytes=0-9999")
        stage.clock.advance(seconds: 2)
        #expect(try await part(stage, "bytes=0-9").source == .stale)
        #expect(try await part(stage, "bytes=5000-5009").source == .fresh)
        #expect(stage.origin.count == 2)
        await stage.end()
    }

    @Test("H18: a whole of the same version that is not kept leaves the parts", arguments: [1, 2])
    func wholeOfTheSameVersionLeavesTheParts(version: Int) async throws {
        let isSame = version == 1
        let stage = try await Self.stage(Self.origin(changesAt: isSame ? .max : 2))
        _ = try await part(stage)
        let whole = try await stage.get()
        #expect(whole.body.utf8.count == Self.wholeBytes)
        #expect(whole.info.refusal == StoreRefusalReason("too-large"))
        #expect(try await part(stage).source == (isSame ? .fresh : .origin))
        await stage.end()
    }
}
