import CacheTestSupport
import Synchronization
import Testing

@testable import CacheEngine

/// An entry of several parts is, beside its bytes, what each of its parts was.
@Suite struct JoinedPartTests {
    private static let text = "memory-only-bytes-and-more"
    private static let first = "bytes=0-10"
    private static let second = "bytes=11-25"
    private static let firstText = "memory-only"
    private static let secondText = "-bytes-and-more"

    /// An origin each part of whose text has a tag of its own.
    private static func origin(
        _ firstTag: String = "first",
        _ secondTag: String = "second"
    ) -> ScriptedOrigin {
        ScriptedOrigin { request, _ in
            let isFirst = request.fields["Range"] == first
            return .whole(
                status: 206,
                fields: [
                    "Cache-Control": "max-age=60", "ETag": "\"1\"",
                    "Cache-Tag": isFirst ? firstTag : secondTag,
                    "Content-Range": isFirst ? "bytes 0-10/26" : "bytes 11-25/26",
                ],
                body: isFirst ? firstText : secondText
            )
        }
    }

    private static func getBoth(_ stage: Stage) async throws {
        for range in [first, second] {
            #expect(try await stage.get(Stage.url, ["Range": range]).status == 206)
        }
    }

    @Test("a purge by the tag of any part ends all of them", arguments: ["first", "second"])
    func joinedPartsHaveTheTagsOfAll(tag: String) async throws {
        for hasMemory in [true, false] {
            let folder = try Folder()
            let stage = try await Stage(Self.origin()) {
                if !hasMemory { $0.memory = .disabled }
                $0.backing = .disk(path: folder.path("cache"), capacity: .megabytes(16))
            }
            try await Self.getBoth(stage)
            #expect(try await stage.get().body == Self.text)
            #expect(stage.origin.count == 2)
            _ = try await stage.cache.purge(tag: tag)
            for range in [Self.first, Self.second] {
                #expect(try await stage.holds(Stage.url, ["Range": range]) == false, "\(range)")
            }
            await stage.end()
        }
    }

    /// More bytes than `BodyStream.collect` reads by default.
    @Test func largePartsAreJoined() async throws {
        let (border, size) = (65 << 20, 70 << 20)
        let ranges = ["0-\(border - 1)", "\(border)-\(size - 1)"]
        let origin = ScriptedOrigin { request, _ in
            let isFirst = request.fields["Range"] == "bytes=\(ranges[0])"
            let count = isFirst ? border : size - border
            return OriginResponse(
                status: 206,
                fields: [
                    "Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Length": "\(count)",
                    "Content-Range": "bytes \(ranges[isFirst ? 0 : 1])/\(size)",
                ],
                body: BodyStream(ByteChunk([UInt8](repeating: 7, count: count)))
            )
        }
        let stage = try await Stage(origin) { $0.memory = .megabytes(1_024) }
        for range in ranges {
            let request = CacheRequest(url: Stage.url, fields: ["Range": "bytes=\(range)"])
            for try await _ in try await stage.cache.respond(to: request).body {}
            await stage.cache.waitUntilIdle()
        }
        #expect(try await stage.holds())
        await stage.end()
    }

    @Test("K1: a part for memory alone keeps all that it is joined with in memory")
    func joinedPartsStayInMemory() async throws {
        for (secret, text) in [(Self.first, Self.firstText), (Self.second, Self.secondText)] {
            let store = RecordingStore()
            let stage = try await Stage(Self.origin()) {
                $0.backing = .custom(store)
                $0.hooks.willStore = {
                    $0.request.fields["Range"] == secret ? $0.inMemoryOnly : $0
                }
            }
            try await Self.getBoth(stage)
            try await stage.cache.flush()
            let whole = try await stage.get()
            #expect(whole.body == Self.text && whole.source == .fresh)
            #expect(whole.info.place == .memoryOnly)
            #expect(await store.everHeld(text) == false, "\(secret)")
            #expect(await store.count == 0, "No copy of the part for everywhere is left")
            await stage.end()
        }
    }

    @Test("a joined entry has the class and the user info of the stored part")
    func joinedPartsKeepClassAndUserInfo() async throws {
        let stage = try await Stage(Self.origin()) {
            $0.hooks.willStore = { proposal in
                var proposal = proposal
                guard proposal.request.fields["Range"] == Self.first else { return proposal }
                proposal.storageClass = .session
                proposal.userInfo = ByteChunk("mine")
                proposal.tags.append("own")
                return proposal
            }
        }
        try await Self.getBoth(stage)
        let whole = try await stage.get()
        #expect(whole.body == Self.text && whole.source == .fresh)
        #expect(whole.info.userInfo?.text == "mine")
        #expect(try await stage.cache.endSession().entries == 1)
        #expect(try await stage.holds() == false)
        try await Self.getBoth(stage)
        #expect(try await stage.cache.purge(tag: "own").entries == 1)
        await stage.end()
    }

    @Test(
        "a field that the directives of either part name stays out of the joined entry",
        arguments: [
            (
                ["Cache-Control": "max-age=60, private=\"X-A\""],
                ["Expires": Stage.date(60), "X-A": "2"]
            ),
            (
                ["Cache-Control": "max-age=60", "X-A": "1"],
                ["Cache-Control": "max-age=60, no-cache=\"X-A\""]
            ),
        ] as [(HeaderFields, HeaderFields)]
    )
    func namedFieldsStayOutOfJoinedParts(fields: (HeaderFields, HeaderFields)) async throws {
        let stage = try await Stage(
            ScriptedOrigin { request, _ in
                let isFirst = request.fields["Range"] == Self.first
                var part = isFirst ? fields.0 : fields.1
                part["ETag"] = "\"1\""
                part["Content-Range"] = isFirst ? "bytes 0-10/26" : "bytes 11-25/26"
                let text = isFirst ? Self.firstText : Self.secondText
                return .whole(status: 206, fields: part, body: text)
            }
        )
        try await Self.getBoth(stage)
        let whole = try await stage.get()
        #expect(whole.body == Self.text && whole.source == .fresh)
        #expect(whole.fields["X-A"] == nil)
        await stage.end()
    }

    /// An origin each part of whose text has fields of its own, and that confirms the text.
    private static func origin(_ first: HeaderFields, _ second: HeaderFields) -> ScriptedOrigin {
        ScriptedOrigin { request, _ in
            if request.fields.contains("If-None-Match") {
                return OriginResponse(status: 304, fields: ["ETag": "\"1\""])
            }
            let isFirst = request.fields["Range"] == Self.first
            var fields = isFirst ? first : second
            fields["ETag"] = "\"1\""
            fields["Content-Range"] = isFirst ? "bytes 0-10/26" : "bytes 11-25/26"
            let text = isFirst ? firstText : secondText
            return .whole(status: 206, fields: fields, body: text)
        }
    }

    private static let longAgo: HeaderFields = ["Last-Modified": Stage.date(-8_640_000)]

    @Test("a date that only the first part has gives the whole its lifetime and its validator")
    func joinedPartsKeepTheDateOfTheFirst() async throws {
        let stage = try await Stage(Self.origin(Self.longAgo, ["Age": "7"]))
        try await Self.getBoth(stage)
        let whole = try await stage.get()
        #expect(whole.body == Self.text && whole.source == .fresh)
        #expect(whole.info.age == .seconds(7))
        let known = try await stage.get(
            Stage.url,
            ["If-Modified-Since": Stage.date(-8_640_000)]
        )
        #expect(known.status == 304)
        #expect(stage.origin.count == 2)
        await stage.end()
    }

    @Test(
        "a directive that only the first part has is in force for the whole",
        arguments: ["no-cache", "max-age=60, must-revalidate"]
    )
    func joinedPartsObeyTheDirectivesOfTheFirst(directives: String) async throws {
        let origin = Self.origin(["Cache-Control": directives], Self.longAgo)
        let stage = try await Stage(origin) { $0.caching.staleOnDisconnect = .seconds(600) }
        try await Self.getBoth(stage)
        stage.clock.advance(seconds: 61)
        let whole = try await stage.get()
        #expect(whole.body == Self.text && whole.source == .revalidated)
        stage.clock.advance(seconds: 61)
        stage.origin.cutOff()
        await #expect(throws: CacheError.self) { try await stage.get() }
        await stage.end()
    }

    @Test("parts whose tags do not fit together are not joined, and the first one stays")
    func partsWithTooManyTagsAreNotJoined() async throws {
        let stage = try await Stage(
            Self.origin(
                String(repeating: "a", count: 40_000),
                String(repeating: "b", count: 40_000)
            )
        )
        try await Self.getBoth(stage)
        #expect(try await stage.holds() == false)
        #expect(try await stage.holds(Stage.url, ["Range": Self.first]))
        #expect(try await stage.holds(Stage.url, ["Range": Self.second]) == false)
        let refusals = await stage.cache.statistics.refusals
        #expect(refusals == [StoreRefusalReason("too-many-tags"): 1])
        await stage.end()
    }

    /// A clock at whose looks something happens.
    private final class EventfulClock: CacheClock {
        private let clock = TestClock()
        private let event = Mutex<(@Sendable () -> Void)?>(nil)

        func atEachLook(_ event: (@Sendable () -> Void)?) { self.event.withLock { $0 = event } }

        var nowSeconds: Int64 {
            event.withLock { $0 }?()
            return clock.nowSeconds
        }
        var monotonicNanoseconds: UInt64 { clock.monotonicNanoseconds }
        func sleep(nanoseconds: UInt64) async throws {
            try await clock.sleep(nanoseconds: nanoseconds)
        }
    }

    /// Purges the tag of the first part at one look at the clock while the second one is fetched and
    /// joined; returns `false` if there are fewer looks.
    private static func purgeHolds(atLook look: Int) async throws -> Bool {
        let clock = EventfulClock()
        var configuration = HTTPCache.Configuration(memory: .megabytes(32))
        configuration.clock = clock
        let cache = try await HTTPCache(configuration: configuration, origin: origin())
        func get(_ range: String) async throws {
            let request = CacheRequest(url: Stage.url, fields: ["Range": range])
            _ = try await cache.respond(to: request).body.collect()
            await cache.waitUntilIdle()
        }
        try await get(first)
        let looks = Mutex(0)
        let tiers = cache.services.tiers
        clock.atEachLook {
            let isDue = looks.withLock { looks in
                looks += 1
                return looks == look
            }
            guard isDue else { return }
            // A purge by tag, as far as it concerns a memory alone.
            tiers.ledger.begin(.tag("first"))
            tiers.memory.removeAtOnce(in: .tag("first"))
            tiers.ledger.end(.tag("first"))
        }
        try await get(second)
        clock.atEachLook(nil)
        let isPurged = looks.withLock { $0 } >= look
        let request = CacheRequest(url: Stage.url, fields: ["Range": first])
        let isHeld = try await cache.storedResponse(for: request) != nil
        #expect(isHeld != isPurged, "at look \(look)")
        await cache.shutDown()
        return isPurged
    }

    @Test("a purge between the look at the stored part and the store of both holds")
    func purgeWhilePartsAreJoinedHolds() async throws {
        var look = 1
        while try await Self.purgeHolds(atLook: look) { look += 1 }
        #expect(look > 3, "A fetch and a store look at the clock")
    }
}
