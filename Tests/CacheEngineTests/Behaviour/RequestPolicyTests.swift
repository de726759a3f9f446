import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

/// The request policies of URL loading systems, each as a value of `CachePolicy`.
@Suite struct RequestPolicyTests {
    // MARK: Default policy (P1)

    @Test("P1: a fresh response costs no traffic")
    func freshAnswerCostsNoTraffic() async throws {
        let stage = try await Stage()
        _ = try await stage.get()
        for _ in 0..<5 {
            let answer = try await stage.get(policy: .standard)
            #expect(answer.source == .fresh)
            #expect(answer.body == "hello")
        }
        #expect(stage.origin.count == 1)
        await stage.end()
    }

    @Test(
        "P1: stale and no-cache answers cost exactly one conditional GET",
        arguments: [("max-age=60", 60.0), ("max-age=60, no-cache", 0), ("max-age=0", 0)]
    )
    func staleAnswerCostsOneConditionalGet(directives: String, waitSeconds: Double) async throws {
        let stage = try await Stage(Resource(["Cache-Control": directives]))
        _ = try await stage.get()
        stage.clock.advance(seconds: waitSeconds)
        let answer = try await stage.get()
        #expect(answer.status == 200)
        #expect(answer.body == "one")
        #expect(answer.source == .revalidated)
        #expect(stage.origin.requests.map(\.method) == [.get, .get])
        #expect(stage.origin.requests[1].fields["If-None-Match"] == "\"1\"")
        await stage.end()
    }

    @Test("P1: with HEAD validation an unchanged response costs one HEAD, a changed one also a GET")
    func headIsAskedFirstWhereThePolicySaysSo() async throws {
        let resource = Resource()
        let stage = try await Stage(resource)
        let policy = CachePolicy(validation: .head)
        _ = try await stage.get(policy: policy)
        stage.clock.advance(seconds: 61)
        let confirmed = try await stage.get(policy: policy)
        #expect(confirmed.body == "one")
        #expect(confirmed.source == .revalidated)
        #expect(stage.origin.requests.map(\.method) == [.get, .head])

        stage.clock.advance(seconds: 61)
        resource.change(body: "two", tag: "\"2\"")
        let changed = try await stage.get(policy: policy)
        #expect(changed.body == "two")
        #expect(changed.source == .origin)
        #expect(stage.origin.requests.map(\.method) == [.get, .head, .head, .get])
        #expect(try await stage.get(policy: policy).body == "two")
        #expect(stage.origin.count == 4)
        await stage.end()
    }

    /// The answer to HEAD is dropped before the origin gets the GET, which may need its connection.
    @Test func answerToHeadIsDroppedBeforeTheGET() async throws {
        let body = ManualBody()
        let isDropped = Atomic(false)
        let stage = try await Stage(
            ScriptedOrigin { request, number in
                let fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"\(number)\""]
                if request.method == .head {
                    return OriginResponse(status: 200, fields: fields, body: body.stream())
                }
                isDropped.store(body.isCancelled, ordering: .releasing)
                return .whole(fields: fields, body: "\(number)")
            }
        )
        let policy = CachePolicy(validation: .head)
        _ = try await stage.get(policy: policy)
        stage.clock.advance(seconds: 61)
        #expect(try await stage.get(policy: policy).body == "3")
        let wasDropped = isDropped.load(ordering: .acquiring)
        #expect(wasDropped)
        await stage.end()
    }

    // MARK: Reloads (P2, P3)

    @Test("P2: a reload does not read, adds no fields, and replaces the entry")
    func reloadIgnoresAndReplacesTheEntry() async throws {
        let resource = Resource()
        let stage = try await Stage(resource)
        _ = try await stage.get()
        resource.change(body: "two", tag: "\"2\"")
        let fields: HeaderFields = ["Accept": "text/plain", "X-Mine": "1"]
        let answer = try await stage.get(
            Stage.url,
            fields,
            policy: .reload
        )
        #expect(answer.body == "two")
        #expect(answer.source == .origin)
        #expect(stage.origin.requests[1].fields == fields)
        #expect(try await stage.get().body == "two")
        #expect(stage.origin.count == 2)
        await stage.end()
    }

    @Test("P3: a reload past all caches says so to them, unless the caller has spoken")
    func reloadPastAllCachesTellsThem() async throws {
        let stage = try await Stage()
        _ = try await stage.get()
        _ = try await stage.get(policy: .reloadThroughCaches)
        #expect(stage.origin.requests[1].fields["Cache-Control"] == "no-cache")
        #expect(stage.origin.requests[1].fields["Pragma"] == "no-cache")

        _ = try await stage.get(
            Stage.url,
            ["Cache-Control": "max-age=5"],
            policy: .reloadThroughCaches
        )
        #expect(stage.origin.requests[2].fields["Cache-Control"] == "max-age=5")
        #expect(stage.origin.requests[2].fields["Pragma"] == nil)
        await stage.end()
    }

    // MARK: Cached else loaded (P4)

    @Test("P4: any age is served without traffic and marked stale; a miss loads once and stores")
    func anyAgeIsServedElseLoaded() async throws {
        let stage = try await Stage()
        let first = try await stage.get(policy: .cacheElseLoad)
        #expect(first.source == .origin)
        #expect(try await stage.get(policy: .cacheElseLoad).source == .fresh)
        stage.clock.advance(seconds: 1_000_000)
        let old = try await stage.get(policy: .cacheElseLoad)
        #expect(old.source == .stale)
        #expect(old.info.isStale)
        #expect(old.info.ageSeconds == 1_000_000)
        #expect(stage.origin.count == 1)
        await stage.end()
    }

    @Test("P4: must-revalidate is honoured where the policy asks for that")
    func anyAgeMayHonourMustRevalidate() async throws {
        let stage = try await Stage(Resource(["Cache-Control": "max-age=60, must-revalidate"]))
        _ = try await stage.get()
        stage.clock.advance(seconds: 100)
        #expect(try await stage.get(policy: .cacheElseLoad).source == .stale)
        let honouring = CachePolicy(freshness: .acceptAnyAgeUnlessForbidden)
        #expect(try await stage.get(policy: honouring).source == .revalidated)
        await stage.end()
    }

    @Test("P4: a preset serves at once and refreshes afterwards")
    func staleAnswerIsServedAndRefreshedBehind() async throws {
        let resource = Resource()
        let stage = try await Stage(resource)
        _ = try await stage.get(policy: .cachedThenRefresh)
        stage.clock.advance(seconds: 100)
        resource.change(body: "two", tag: "\"2\"")
        let old = try await stage.get(policy: .cachedThenRefresh)
        #expect(old.body == "one")
        #expect(old.source == .stale)
        #expect(stage.origin.count == 2)
        let new = try await stage.get(policy: .cachedThenRefresh)
        #expect(new.body == "two")
        #expect(new.source == .fresh)
        #expect(stage.origin.count == 2)
        await stage.end()
    }

    // MARK: Cache only (P5)

    @Test("P5: the origin is never asked; a hit of any age is served, a miss throws or is nil")
    func cacheDataElseNothing() async throws {
        let stage = try await Stage()
        await #expect {
            try await stage.get(policy: .cacheOnly)
        } throws: {
            ($0 as? CacheError)?.code == .notCached
        }
        #expect(try await stage.holds() == false)
        #expect(stage.origin.count == 0)

        _ = try await stage.get()
        stage.clock.advance(seconds: 1_000_000)
        let old = try await stage.get(policy: .cacheOnly)
        #expect(old.source == .stale)
        #expect(old.body == "hello")
        #expect(try await stage.holds())
        for method in [HTTPMethod.post, .delete] {
            await #expect(throws: CacheError.self) {
                try await stage.get(policy: .cacheOnly, method: method)
            }
        }
        #expect(stage.origin.count == 1)
        await stage.end()
    }

    @Test("P5: only-if-cached is the variant without stale responses")
    func onlyIfCachedServesFreshOr504() async throws {
        let stage = try await Stage()
        let wish: HeaderFields = ["Cache-Control": "only-if-cached"]
        #expect(try await stage.get(Stage.url, wish).status == 504)
        _ = try await stage.get()
        #expect(try await stage.get(Stage.url, wish).source == .fresh)
        stage.clock.advance(seconds: 61)
        let late = try await stage.get(Stage.url, wish)
        #expect(late.status == 504)
        #expect(late.source == .generated)
        #expect(stage.origin.count == 1)
        await stage.end()
    }

    @Test("P5: the response of the cache's own names the cache as every other response does")
    func ownAnswerNamesTheCacheAsOthersDo() async throws {
        let wish: HeaderFields = ["Cache-Control": "only-if-cached"]
        for (name, text) in [("edge", "edge"), ("Node 7", "\"Node 7\"")] {
            for field in [HTTPCache.Configuration.CacheStatusField.added, .omitted] {
                let stage = try await Stage {
                    $0.name = name
                    $0.cacheStatus = field
                }
                let own = try await stage.get(Stage.url, wish)
                #expect(own.status == 504)
                let status = own.fields["Cache-Status"]
                #expect(status == (field == .added ? "\(text); detail=only-if-cached" : nil))
                _ = try await stage.get()
                let hit = try await stage.get().fields["Cache-Status"]
                #expect(hit == (field == .added ? "\(text); hit; ttl=60" : nil))
                await stage.end()
            }
        }
    }

    // MARK: Always validated, read and write switches (P6, P7)

    @Test("P6: a fresh entry still costs one conditional GET; 304 freshens, 200 replaces")
    func freshEntryIsValidatedWhereThePolicySaysSo() async throws {
        let resource = Resource()
        let stage = try await Stage(resource)
        _ = try await stage.get()
        stage.clock.advance(seconds: 50)
        let confirmed = try await stage.get(policy: .revalidate)
        #expect(confirmed.status == 200)
        #expect(confirmed.body == "one")
        #expect(confirmed.source == .revalidated)
        #expect(stage.origin.requests[1].fields["If-None-Match"] == "\"1\"")
        stage.clock.advance(seconds: 50)
        #expect(try await stage.get().source == .fresh, "Freshened: 50 s of 60 have passed")
        #expect(stage.origin.count == 2)

        resource.change(body: "two", tag: "\"2\"")
        let replaced = try await stage.get(policy: .revalidate)
        #expect(replaced.body == "two")
        #expect(replaced.source == .origin)
        #expect(try await stage.get().body == "two")
        await stage.end()
    }

    @Test(
        "P7: reading and writing are two switches",
        arguments: [(true, true), (true, false), (false, true), (false, false)]
    )
    func readingAndWritingAreTwoSwitches(reads: Bool, writes: Bool) async throws {
        let resource = Resource()
        let stage = try await Stage(resource)
        let policy = CachePolicy(reads: reads, writes: writes)
        _ = try await stage.get(policy: policy)
        #expect(try await stage.holds() == writes)

        try await stage.cache.removeAll()
        _ = try await stage.get()
        resource.change(body: "two", tag: "\"2\"")
        let fresh = try await stage.get(policy: policy)
        #expect(fresh.body == (reads ? "one" : "two"))
        stage.clock.advance(seconds: 61)
        let stale = try await stage.get(policy: policy)
        #expect(stale.body == "two")
        let condition = stage.origin.requests.last?.fields["If-None-Match"]
        #expect(condition == (reads ? "\"1\"" : nil))
        #expect(stage.origin.requests.last?.fields["If-Modified-Since"] == nil)

        let stored = try await stage.cache.storedResponse(for: CacheRequest(url: Stage.url))
        let body = try await stored?.body.collect().text
        #expect(body == (writes ? "two" : "one"))
        await stage.end()
    }
}
