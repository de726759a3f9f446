import CacheEngine
import CacheTestSupport
import Testing

/// X17 to X20 and F13: excessive requests and responses.
@Suite struct ExhaustionTests {
    @Test("X18: a PURGE from outside is an unknown method: it goes to the origin, which decides")
    func purgeMethodIsForwardedAsUnknown() async throws {
        let stage = try await Stage()
        _ = try await stage.get()
        for status in [401, 403, 405, 501] {
            stage.origin.follow { _, _ in .whole(status: status) }
            #expect(try await stage.get(method: "PURGE").status == status)
            #expect(try await stage.holds())
        }
        await stage.end()
    }

    @Test(
        "X19: many and overlapping ranges never make an answer larger than the whole and its heads"
    )
    func manyRangesAreBounded() async throws {
        let whole = String(repeating: "x", count: 10_000)
        let stage = try await Stage(ScriptedOrigin(body: whole))
        _ = try await stage.get()
        let wishes = [
            (0..<1_000).map { "\($0)-\($0)" }, (0..<100).map { _ in "0-" },
            (0..<16).map { "\($0)-" }, (0..<16).map { "\($0 * 2)-\($0 * 2)" },
            (0..<10).map { "-\(10_000 - $0)" },
        ]
        for wish in wishes {
            let answer = try await stage.get(
                Stage.url,
                ["Range": "bytes=" + wish.joined(separator: ",")]
            )
            #expect(answer.status == 200 || answer.status == 206)
            #expect(answer.body.utf8.count <= whole.utf8.count + 16 * 200)
        }
        #expect(stage.origin.count == 1)
        await stage.end()
    }

    @Test("X19: ranges ask the origin for no more than they are, and for one whole at most")
    func rangesDoNotAmplify() async throws {
        for (miss, wholes) in [(CachingRules.RangeMiss.partOnly, 0), (.wholeBehind, 1)] {
            let origin = RangeTests.origin()
            let stage = try await Stage(origin) { $0.caching.rangeMiss = miss }
            for start in 0..<20 {
                _ = try await stage.get(Stage.url, ["Range": "bytes=\(start)-\(start)"])
            }
            let asked = origin.requests.filter { !$0.fields.contains("Range") }
            #expect(asked.count == wholes)
            #expect(origin.count <= 21)
            await stage.end()
        }
    }

    @Test("X19: a whole that cannot be stored is not fetched again after every range")
    func unstorableWholeIsNotFetchedAgain() async throws {
        let origin = RangeTests.origin(["Cache-Control": "no-store", "ETag": "\"1\""])
        let stage = try await Stage(origin) { $0.caching.rangeMiss = .wholeBehind }
        for start in 0..<20 {
            _ = try await stage.get(Stage.url, ["Range": "bytes=\(start)-\(start)"])
        }
        let wholes = origin.requests.filter { !$0.fields.contains("Range") }
        #expect(wholes.count <= 1)
        await stage.end()
    }

    @Test("X20: a flood of invented queries stays within the memory")
    func queryBustingIsBounded() async throws {
        let stage = try await Stage(
            ScriptedOrigin(
                fields: ["Cache-Control": "max-age=60"],
                body: String(repeating: "x", count: 1_000)
            )
        ) { $0.memory = .megabytes(1) }
        for number in 0..<3_000 { _ = try await stage.get("http://h/?bust=\(number)") }
        let usage = await stage.cache.statistics.memory
        #expect(usage.bytes <= 1 << 20)
        #expect(usage.entries > 0)
        await stage.end()
    }

    @Test("X20: too many tags, or tags too long, are not stored: they could not be purged by")
    func tagsAreBounded() async throws {
        for (line, isStored) in [
            ((0..<256).map { "t\($0)" }.joined(separator: ","), true),
            ((0..<257).map { "t\($0)" }.joined(separator: ","), false),
            (String(repeating: "t", count: 70_000), false),
        ] {
            let stage = try await Stage(
                ScriptedOrigin(fields: ["Cache-Control": "max-age=60", "Cache-Tag": line])
            )
            let answer = try await stage.get()
            #expect(answer.body == "hello")
            #expect(try await stage.holds() == isStored, "\(line.prefix(20)) \(line.utf8.count)")
            #expect(answer.info.isStored == isStored)
            #expect(answer.info.refusal == (isStored ? nil : StoreRefusalReason("too-many-tags")))
            #expect(answer.fields["Cache-Status"]?.contains("stored") == isStored)
            let refusals = await stage.cache.statistics.refusals
            #expect(refusals == (isStored ? [:] : [StoreRefusalReason("too-many-tags"): 1]))
            await stage.end()
        }
    }

    @Test("a body that has no room anywhere is told as refused, with the reason")
    func bodyWithoutRoomIsReportedAsRefused() async throws {
        let body = String(repeating: "x", count: 2 << 20)
        let tooLarge = StoreRefusalReason("too-large")
        for isDiskThere in [false, true] {
            let folder = try Folder()
            let stage = try await Stage(
                ScriptedOrigin(fields: ["Cache-Control": "max-age=60"], body: body)
            ) {
                $0.memory = .megabytes(1)
                if isDiskThere {
                    $0.backing = .disk(path: folder.path("cache"), capacity: .megabytes(64))
                }
            }
            for round in 1...2 {
                let answer = try await stage.get()
                #expect(answer.body == body)
                guard !isDiskThere else {
                    #expect(round == 2 || answer.info.isStored)
                    continue
                }
                #expect(!answer.info.isStored && answer.info.refusal == tooLarge)
                let status = answer.fields["Cache-Status"] ?? ""
                #expect(!status.contains("stored") && !status.contains("ttl"))
                #expect(status.contains("too-large"))
                #expect(await stage.cache.statistics.refusals == [tooLarge: round])
            }
            #expect(stage.origin.count == (isDiskThere ? 1 : 2))
            await stage.end()
        }
    }

    @Test("a body of unknown length is refused for its size as one of a known length is")
    func bodyThatOutgrowsTheDiskIsRefusedForItsSize() async throws {
        let text = String(repeating: "x", count: 1 << 20)
        let tooLarge = StoreRefusalReason("too-large")
        for capacity in [ByteCount.zero, .megabytes(16)] {
            for isKnown in [true, false] {
                let files = FaultyFileSystem(seed: 1)
                let origin = ScriptedOrigin { _, _ in
                    let body = ManualBody()
                    for _ in 0..<4 { body.feed(text) }
                    body.finish()
                    var fields: HeaderFields = ["Cache-Control": "max-age=60"]
                    if isKnown { fields["Content-Length"] = "\(4 << 20)" }
                    return OriginResponse(status: 200, fields: fields, body: body.stream())
                }
                let stage = try await Stage(origin) {
                    $0.memory = .megabytes(1)
                    $0.backing = .disk(path: "/cache", capacity: .megabytes(64))
                    $0.backing.fileSystem = .replaced(files)
                }
                try await stage.cache.setDiskCapacity(capacity)
                #expect(try await stage.get().body.utf8.count == 4 << 20)
                let statistics = await stage.cache.statistics
                #expect(statistics.refusals == [tooLarge: 1], "\(capacity), known: \(isKnown)")
                #expect(statistics.storageErrors == 0, "\(capacity), known: \(isKnown)")
                await stage.end()
            }
        }
    }

    @Test("a part that is too large to be gathered is told as refused, though the disk has room")
    func partWithoutRoomIsReportedAsRefused() async throws {
        let body = String(repeating: "x", count: 2 << 20)
        let tooLarge = StoreRefusalReason("too-large")
        for isDiskThere in [false, true] {
            let folder = try Folder()
            let fields: HeaderFields = [
                "Cache-Control": "max-age=60", "ETag": "\"1\"",
                "Content-Range": "bytes 0-\(body.utf8.count - 1)/4194304",
            ]
            let origin = ScriptedOrigin { _, _ in
                .whole(status: 206, fields: fields, body: body)
            }
            let stage = try await Stage(origin) {
                $0.memory = .megabytes(1)
                if isDiskThere {
                    $0.backing = .disk(path: folder.path("cache"), capacity: .megabytes(64))
                }
            }
            for round in 1...2 {
                let answer = try await stage.get(Stage.url, ["Range": "bytes=0-2097151"])
                #expect(answer.status == 206 && answer.body == body)
                #expect(!answer.info.isStored && answer.info.refusal == tooLarge)
                let status = answer.fields["Cache-Status"] ?? ""
                #expect(!status.contains("stored") && !status.contains("ttl"))
                #expect(await stage.cache.statistics.refusals == [tooLarge: round])
            }
            await stage.end()
        }
    }

    @Test("X20, X21, F13: a head beyond the limits is an error, and holds no key")
    func largeHeadsAreErrors() async throws {
        let heads: [HeaderFields] = [
            ["Cache-Tag": String(repeating: "t", count: 50 << 20)],
            HeaderFields((0..<10_000).map { ("X-\($0)", "y") }),
        ]
        for head in heads {
            let stage = try await Stage(ScriptedOrigin(fields: head))
            await #expect {
                try await stage.get()
            } throws: {
                ($0 as? CacheError)?.code == .originMisbehaved
            }
            stage.clock.advance(seconds: 2)
            stage.origin.follow { _, _ in .whole(fields: ["Cache-Control": "max-age=60"]) }
            #expect(try await stage.get().status == 200)
            #expect(try await stage.get().source == .fresh)
            await stage.end()
        }
    }

    /// A small cache in front of an origin whose responses have this body.
    private static func stage(_ source: EndlessBody) async throws -> Stage {
        try await Stage(
            ScriptedOrigin { _, _ in
                OriginResponse(
                    status: 200,
                    fields: ["Cache-Control": "max-age=60", "ETag": "\"a\""],
                    body: BodyStream(source)
                )
            }
        ) {
            $0.memory = .megabytes(1)
            $0.originLimits.windowSize = .bytes(256 << 10)
        }
    }

    @Test("F13: an endless body is delivered as long as it is read, and never stored")
    func endlessBodyIsNotStored() async throws {
        let source = EndlessBody()
        let stage = try await Self.stage(source)
        do {
            let response = try await stage.cache.respond(to: CacheRequest(url: Stage.url))
            var received = 0
            for try await chunk in response.body {
                received += chunk.count
                if received > 8 << 20 { break }
            }
            #expect(received > 8 << 20)
        }
        await stage.cache.waitUntilIdle()
        #expect(source.isCancelled)
        #expect(try await stage.holds() == false)
        await stage.end()
    }

    /// The origin ignores the condition, and the cache answers 304 in its place.
    @Test("F13: an endless body is given up if its one request needs none of it")
    func endlessBodyIsGivenUpWithoutAReader() async throws {
        let source = EndlessBody()
        let stage = try await Self.stage(source)
        let request = CacheRequest(url: Stage.url, fields: ["If-None-Match": "\"a\""])
        #expect(try await stage.cache.respond(to: request).status == 304)
        let isCancelled = await eventually { source.isCancelled }
        try #require(isCancelled)
        await stage.end()
    }
}

/// A body without an end.
private final class EndlessBody: BodySource {
    private let chunk = ByteChunk([UInt8](repeating: 0x78, count: 16_384))
    private let state = ManualBody()

    var isCancelled: Bool { state.isCancelled }

    func next() async throws -> ByteChunk? {
        await Task.yield()
        return chunk
    }

    func cancel() { state.cancel() }
}
