import CacheEngine
import CacheTestSupport
import Testing

/// Entries are found by their tags, wherever the tags came from.
@Suite struct TagTests {
    /// An origin whose responses and 304 responses carry different tags.
    private static func origin(_ first: String, confirmedWith second: String?) -> ScriptedOrigin {
        ScriptedOrigin { request, number in
            var fields: HeaderFields = ["Cache-Control": "max-age=10", "ETag": "\"1\""]
            guard request.fields.contains("If-None-Match") else {
                fields["Cache-Tag"] = first
                return .whole(fields: fields, body: "hello")
            }
            if let second { fields["Cache-Tag"] = second }
            return OriginResponse(status: 304, fields: fields)
        }
    }

    private enum Place: CaseIterable {
        case memory, disk, both
    }

    private static func stage(
        _ place: Place,
        _ folder: Folder,
        _ origin: ScriptedOrigin
    ) async throws -> Stage {
        try await Stage(origin) {
            if place == .disk { $0.memory = .disabled }
            if place != .memory {
                $0.backing = .disk(path: folder.path("cache"), capacity: .megabytes(16))
            }
        }
    }

    @Test("a purge removes all whose served fields name the tag, also where a 304 brought it")
    func tagsOfAConfirmationCount() async throws {
        for place in Place.allCases {
            for (tag, isFound) in [("blue", true), ("red", true), ("green", false)] {
                let folder = try Folder()
                let origin = Self.origin("green", confirmedWith: "red, blue")
                let stage = try await Self.stage(place, folder, origin)
                _ = try await stage.get()
                stage.clock.advance(seconds: 11)
                let confirmed = try await stage.get()
                #expect(confirmed.source == .revalidated)
                #expect(confirmed.fields["Cache-Tag"] == "red, blue")
                _ = try await stage.cache.purge(tag: tag)
                #expect(try await stage.holds() != isFound, "\(place) \(tag)")
                await stage.end()
            }
        }
    }

    @Test("a purge of a tag that no entry can carry is refused and names its length")
    func overlongTagIsRefused() async throws {
        let folder = try Folder()
        let stage = try await Self.stage(.both, folder, Self.origin("green", confirmedWith: nil))
        let tag = String(repeating: "t", count: 65_534)
        let calls: [@Sendable (HTTPCache) async throws -> Void] = [
            { _ = try await $0.purge(tag: tag) },
            { try await $0.markStale(tagged: tag) },
            { _ = try await $0.purge(.tag(tag)) },
            { _ = try await $0.purge(.tag(tag), isSoft: true) },
        ]
        for call in calls {
            do {
                try await call(stage.cache)
                Issue.record("The tag was taken")
            } catch let error as CacheError {
                #expect(error.code == .requestInvalid)
                #expect(error.detail.contains(" 65534 bytes"), "\(error.detail)")
            }
        }
        let longest = String(tag.dropLast())
        #expect(try await stage.cache.purge(tag: longest).entries == 0)
        try await stage.cache.markStale(tagged: longest)
        await stage.end()
    }

    @Test func confirmationWithoutTagsKeepsTheStoredTags() async throws {
        let stage = try await Stage(Self.origin("green", confirmedWith: nil))
        _ = try await stage.get()
        stage.clock.advance(seconds: 11)
        #expect(try await stage.get().source == .revalidated)
        #expect(try await stage.cache.purge(tag: "green").entries == 1)
        #expect(try await stage.holds() == false)
        await stage.end()
    }

    @Test("a tag that the application added stays when the origin confirms with others")
    func tagsOfTheApplicationStay() async throws {
        let stage = try await Stage(Self.origin("green", confirmedWith: "red")) {
            $0.hooks.willStore = { proposal in
                var proposal = proposal
                proposal.tags.append("own")
                return proposal
            }
        }
        _ = try await stage.get()
        stage.clock.advance(seconds: 11)
        #expect(try await stage.get().source == .revalidated)
        #expect(try await stage.cache.purge(tag: "own").entries == 1)
        await stage.end()
    }

    @Test("a tag in a field that the application added counts at once")
    func tagsInFieldsOfTheApplicationCount() async throws {
        for (tag, isFound) in [("own", true), ("green", true), ("removed", false)] {
            let stage = try await Stage(Self.origin("green, removed", confirmedWith: nil)) {
                $0.hooks.willStore = { proposal in
                    var proposal = proposal
                    proposal.fields["Surrogate-Key"] = "own"
                    proposal.tags.removeAll { $0 == "removed" }
                    return proposal
                }
            }
            _ = try await stage.get()
            _ = try await stage.cache.purge(tag: tag)
            #expect(try await stage.holds() != isFound, "\(tag)")
            await stage.end()
        }
    }

    @Test(
        "an entry that a soft purge made stale is confirmed as a stale one",
        arguments: [false, true]
    )
    func softPurgeIsAStaleForward(byTag: Bool) async throws {
        // The confirmation changes the entry, so that the response is the origin's.
        let origin = ScriptedOrigin(fields: ["Cache-Control": "max-age=60", "Cache-Tag": "green"])
        let stage = try await Stage(origin)
        _ = try await stage.get()
        stage.clock.advance(seconds: 1)
        if byTag {
            try await stage.cache.markStale(tagged: "green")
        } else {
            _ = try await stage.cache.markStale(CacheRequest(url: Stage.url))
        }
        let response = try await stage.cache.respond(to: CacheRequest(url: Stage.url))
        let status = response.fields["Cache-Status"] ?? ""
        #expect(status.contains("fwd=stale"), "\(status)")
        await stage.end()
    }

    @Test("a soft purge concerns entries of an earlier process whose clock was ahead")
    func softPurgeConcernsEntriesFromTheFuture() async throws {
        let store = InMemoryStore()
        let fields: HeaderFields = ["Cache-Control": "max-age=86400", "Cache-Tag": "green"]
        let ahead = TestClock(startSeconds: Stage.startSeconds + 7_200)
        let first = try await Stage(ScriptedOrigin(fields: fields), clock: ahead) {
            $0.backing = .custom(store)
        }
        _ = try await first.get()
        await first.end()
        let second = try await Stage(ScriptedOrigin(fields: fields)) { $0.backing = .custom(store) }
        #expect(try await second.get().source == .fresh)
        try await second.cache.markStale(tagged: "green")
        #expect(try await second.get().source != .fresh)
        #expect(try await second.get().source == .fresh)
        await second.end()
    }

    @Test(
        "a look-up without the origin sees what a soft purge made stale",
        arguments: [false, true]
    )
    func softPurgeIsSeenByALookUp(ofEverything: Bool) async throws {
        for place in Place.allCases {
            let folder = try Folder()
            let origin = Self.origin("green", confirmedWith: nil)
            let stage = try await Self.stage(place, folder, origin)
            _ = try await stage.get()
            let request = CacheRequest(url: Stage.url)
            let before = try await stage.cache.storedResponse(for: request)
            #expect(before?.info.source == .fresh, "\(place)")
            let target = ofEverything ? PurgeTarget.everything : .tag("green")
            try await stage.cache.purge(target, isSoft: true)
            let after = try await stage.cache.storedResponse(for: request)
            #expect(after?.info.source == .stale, "\(place)")
            #expect(after?.info.remainingLifetime == .seconds(0), "\(place)")
            await stage.end()
        }
    }

    @Test("a confirmation with more tags than the limit leaves nothing that cannot be purged")
    func aConfirmationWithTooManyTagsEndsTheEntry() async throws {
        let many = (0..<257).map { "t\($0)" }.joined(separator: ",")
        let stage = try await Stage(Self.origin("green", confirmedWith: many))
        _ = try await stage.get()
        stage.clock.advance(seconds: 11)
        #expect(try await stage.get().body == "hello")
        #expect(try await stage.holds() == false)
        await stage.end()
    }

    @Test("what is stored by hand with more tags than the limit is refused, and ends the older")
    func tooManyTagsByHandAreRefused() async throws {
        let many = (0..<257).map { "t\($0)" }.joined(separator: ",")
        let long = String(repeating: "t", count: 70_000)
        for line in [many, long] {
            let stage = try await Stage(Self.origin("green", confirmedWith: nil))
            _ = try await stage.get()
            let answer = CacheResponse(
                status: 200,
                fields: ["Cache-Control": "max-age=60", "Cache-Tag": line],
                body: BodyStream(ByteChunk("by hand"))
            )
            let outcome = try await stage.cache.store(answer, for: CacheRequest(url: Stage.url))
            #expect(outcome == .refused(.notAdmitted))
            #expect(try await stage.holds() == false)
            let refusals = await stage.cache.statistics.refusals
            #expect(refusals == [StoreRefusalReason("too-many-tags"): 1])
            await stage.end()
        }
    }

    private static let composed = "\u{e9}"
    private static let decomposed = "e\u{301}"

    @Test("two tags that Unicode calls equal are two tags, wherever they meet")
    func tagsAreComparedByBytes() async throws {
        let pairs = [(Self.composed, Self.decomposed), (Self.decomposed, Self.composed)]
        for (own, named) in pairs {
            for tag in [own, named] {
                let stage = try await Stage()
                var options = HTTPCache.ManualStoreOptions()
                options.tags = [own]
                let answer = CacheResponse(
                    status: 200,
                    fields: ["Cache-Control": "max-age=60", "Cache-Tag": named],
                    body: BodyStream(ByteChunk("by hand"))
                )
                let request = CacheRequest(url: Stage.url)
                try await stage.cache.store(answer, for: request, options: options)
                #expect(try await stage.cache.purge(tag: tag).entries == 1)
                await stage.end()

                let confirming = try await Stage(Self.origin("green", confirmedWith: named)) {
                    $0.hooks.willStore = { proposal in
                        var proposal = proposal
                        proposal.tags.append(own)
                        return proposal
                    }
                }
                _ = try await confirming.get()
                confirming.clock.advance(seconds: 11)
                #expect(try await confirming.get().source == .revalidated)
                #expect(try await confirming.cache.purge(tag: tag).entries == 1)
                await confirming.end()
            }
        }
    }

    @Test func tagsOfJoinedPartsAreComparedByBytes() async throws {
        for tag in [Self.composed, Self.decomposed] {
            let stage = try await Stage(
                ScriptedOrigin { request, _ in
                    let isFirst = request.fields["Range"] == "bytes=0-4"
                    return .whole(
                        status: 206,
                        fields: [
                            "Cache-Control": "max-age=60", "ETag": "\"1\"",
                            "Content-Range": isFirst ? "bytes 0-4/26" : "bytes 5-9/26",
                            "Cache-Tag": isFirst ? Self.composed : Self.decomposed,
                        ],
                        body: isFirst ? "abcde" : "fghij"
                    )
                }
            )
            _ = try await stage.get(Stage.url, ["Range": "bytes=0-4"])
            _ = try await stage.get(Stage.url, ["Range": "bytes=5-9"])
            #expect(try await stage.cache.purge(tag: tag).entries == 1)
            await stage.end()
        }
    }

    @Test func tagsInTheFieldsOfWhatIsStoredByHandCount() async throws {
        let stage = try await Stage()
        let answer = CacheResponse(
            status: 200,
            fields: ["Cache-Control": "max-age=60", "Cache-Tag": "green"],
            body: BodyStream(ByteChunk("by hand"))
        )
        var options = HTTPCache.ManualStoreOptions()
        options.tags = ["own"]
        for tag in ["own", "green"] {
            try await stage.cache.store(answer, for: CacheRequest(url: Stage.url), options: options)
            #expect(try await stage.cache.purge(tag: tag).entries == 1)
            #expect(try await stage.holds() == false)
        }
        await stage.end()
    }
}
