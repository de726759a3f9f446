import CacheTestSupport
import Testing

@testable import CacheEngine

/// F13, X17: lengths that an origin announces, whether or not a body of that length follows.
@Suite struct AnnouncedLengthTests {
    /// The largest numbers, those around the limit of an entry's head, and those around the limit
    /// of a body file.
    static let lengths: [Int] = [
        .max, .max - 1, .max - 100, (1 << 46) + 1, 1 << 46, (1 << 32) + 1, 1 << 32, (1 << 32) - 1,
        1 << 31,
    ]

    private static let tooLarge = StoreRefusalReason("too-large")

    private enum Place: CaseIterable {
        case memory, vastMemory, disk, customStore
    }

    private static func stage(
        _ place: Place,
        _ folder: Folder,
        _ origin: ScriptedOrigin
    ) async throws -> Stage {
        try await Stage(origin) {
            switch place {
            case .memory: break
            case .vastMemory:
                $0.memory = MemoryOptions(capacity: .gigabytes(64), maximumEntryShare: 0.5)
            case .disk:
                $0.backing = .disk(path: folder.path("cache"), capacity: .megabytes(64))
            case .customStore: $0.backing = .custom(InMemoryStore())
            }
        }
    }

    /// The bytes that arrive, and the code of the error that ends them.
    private static func read(_ body: BodyStream) async -> (text: String, code: CacheError.Code?) {
        var text = ""
        do {
            for try await piece in body { text += piece.text }
            return (text, nil)
        } catch { return (text, (error as? CacheError)?.code) }
    }

    @Test("F13: a length that no body has costs its own request alone", arguments: lengths)
    func anyAnnouncedLengthIsHarmless(length: Int) async throws {
        for place in Place.allCases {
            let folder = try Folder()
            let origin = ScriptedOrigin(
                fields: ["Cache-Control": "max-age=60", "Content-Length": "\(length)"]
            )
            let stage = try await Self.stage(place, folder, origin)
            let response = try await stage.cache.respond(to: CacheRequest(url: Stage.url))
            #expect(response.status == 200)
            #expect(response.fields["Content-Length"] == "\(length)")
            #expect(response.body.count == length)
            let isKept = place == .vastMemory && length <= EntryHead.bodyCountMax
            #expect(response.info.refusal == (isKept ? nil : Self.tooLarge), "\(place)")
            let (text, code) = await Self.read(response.body)
            #expect(text == "hello" && code == .bodyTruncated)
            await stage.cache.waitUntilIdle()
            #expect(try await stage.holds() == false, "\(place)")
            stage.origin.follow { _, _ in .whole(fields: ["Cache-Control": "max-age=60"]) }
            #expect(try await stage.get().status == 200)
            #expect(try await stage.get().source == .fresh, "\(place)")
            await stage.end()
        }
    }

    @Test("X17: ranges and a HEAD share a body of any announced length", arguments: lengths)
    func rangesOfAnyAnnouncedLengthAreAnswered(length: Int) async throws {
        let scene = try await FlightScene()
        let whole = try #require(await scene.crowd(1).first)
        func ask(_ change: (inout CacheRequest) -> Void) async throws -> Caller {
            try #require(await scene.crowd(1, .page.with(change)).first)
        }
        let rest = try await ask { $0.fields["Range"] = "bytes=5-" }
        let last = try await ask { $0.fields["Range"] = "bytes=-1" }
        let head = try await ask { $0.method = .head }
        let body = try await scene.begin(
            0,
            fields: ["Cache-Control": "max-age=60", "Content-Length": "\(length)"]
        )
        await body.feed("0123456789", scene.world)
        await body.feed("ab", scene.world)
        #expect(whole.text == "0123456789ab" && whole.end == nil)
        #expect(rest.status == 206 && rest.text == "56789ab" && rest.end == nil)
        #expect(rest.fields["Content-Range"] == "bytes 5-\(length - 1)/\(length)")
        #expect(rest.fields["Content-Length"] == "\(length - 5)")
        #expect(head.isComplete && head.fields["Content-Length"] == "\(length)")
        // The last byte is too far ahead of a body that is not stored.
        #expect(scene.origin.count == 2)
        let range = "bytes \(length - 1)-\(length - 1)/\(length)"
        try await scene.answer(
            1,
            status: 206,
            fields: ["Content-Range": range, "Content-Length": "1"],
            body: "z"
        )
        #expect(last.isComplete && last.status == 206 && last.text == "z")
        #expect(last.fields["Content-Range"] == range)
        body.fail(CacheError(.originFailed, detail: "reset"))
        await scene.world.settle()
        for reader in [whole, rest] { #expect(reader.errorCode == .originFailed) }
        await scene.close()
    }

    @Test("X17: a part of any announced place and size is harmless", arguments: lengths)
    func anyAnnouncedPartIsHarmless(length: Int) async throws {
        let places: [(contentRange: String, isSound: Bool)] = [
            ("bytes 0-4/\(length)", true),
            ("bytes \(length - 5)-\(length - 1)/\(length)", true),
            ("bytes 0-\(length - 1)/\(length)", false),
            ("bytes 5-\(length - 1)/*", false),
        ]
        for (contentRange, isSound) in places {
            let origin = ScriptedOrigin(
                status: 206,
                fields: [
                    "Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Range": contentRange,
                ]
            )
            let stage = try await Stage(origin)
            let own = contentRange.hasPrefix("bytes 0-") ? "bytes=0-4" : "bytes=-5"
            let wish: HeaderFields = ["Range": own]
            #expect(try await stage.get(Stage.url, wish).body == "hello")
            #expect(try await stage.holds(Stage.url, wish) == isSound, "\(contentRange)")
            // Ranges that the stored part has in part, and at its ends.
            for range in [
                "bytes=0-", "bytes=1-3", "bytes=-5", "bytes=-3", "bytes=0-0,-1", "bytes=3-9",
                "bytes=\(length - 1)-", "bytes=0-\(length - 1)",
            ] {
                let answer = try await stage.get(Stage.url, ["Range": range])
                #expect(answer.status == 206, "\(range) of \(contentRange)")
            }
            await stage.end()
        }
    }

    @Test("F13: a HEAD that announces any length is harmless", arguments: lengths)
    func headOfAnyAnnouncedLengthIsHarmless(length: Int) async throws {
        let stage = try await Stage(Resource())
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        stage.origin.follow { _, _ in
            let fields: HeaderFields = [
                "Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Length": "\(length)",
            ]
            return OriginResponse(status: 200, fields: fields)
        }
        let head = try await stage.get(method: .head)
        #expect(head.status == 200 && head.body.isEmpty)
        #expect(head.fields["Content-Length"] == "\(length)")
        #expect(try await stage.holds() == false, "The length shows that the content has changed")
        await stage.end()
    }

    // MARK: The limits themselves

    private static func tiers(memoryBytes: Int) -> TieredStore {
        TieredStore(
            memory: MemoryTier(MemoryConfiguration(capacityBytes: memoryBytes)),
            backing: NoBackingTier(),
            hasher: .random(),
            clock: FixedClock(nowSeconds: 1_000_000),
            recorder: Recorder(onEvent: nil)
        )
    }

    @Test("no body is gathered that the head of an entry cannot state")
    func gatheredBodiesFitIntoAHead() {
        let vast = Self.tiers(memoryBytes: 1 << 40)
        #expect(vast.gatheredBytesMax == EntryHead.bodyCountMax)
        #expect(vast.hasRoom(forBody: EntryHead.bodyCountMax, headBytes: 1_000))
        #expect(!vast.hasRoom(forBody: EntryHead.bodyCountMax + 1, headBytes: 1_000))
        let small = Self.tiers(memoryBytes: 1 << 20)
        #expect(small.gatheredBytesMax == 1 << 20)
        for length in Self.lengths {
            #expect(!small.hasRoom(forBody: length, headBytes: 1 << 18), "\(length)")
        }
    }

    @Test("a source that counts less than nothing has an unknown length", arguments: [-1, Int.min])
    func negativeLengthIsUnknown(count: Int) async throws {
        let body = ManualBody()
        body.feed("hello")
        body.finish()
        let stage = try await Stage(
            ScriptedOrigin { _, _ in
                OriginResponse(
                    status: 200,
                    fields: ["Cache-Control": "max-age=60"],
                    body: body.stream(count: count)
                )
            }
        )
        #expect(body.stream(count: count).count == nil)
        let answer = try await stage.get(Stage.url, ["Range": "bytes=1-2"])
        #expect(answer.status == 200 && answer.body == "hello")
        await stage.end()
    }
}
