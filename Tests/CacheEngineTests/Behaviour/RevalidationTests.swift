import CacheEngine
import CacheTestSupport
import Testing

/// H7 to H10: validating stored responses with the origin.
@Suite struct RevalidationTests {
    @Test("H7: after a 304 the caller sees 200, the stored body, and the network's own fields")
    func confirmedAnswerIsA200() async throws {
        let stage = try await Stage(Resource())
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        let answer = try await stage.get()
        #expect(answer.status == 200)
        #expect(answer.body == "one")
        #expect(answer.source == .revalidated)
        #expect(answer.info.originStatus == 304)
        #expect(answer.info.originFields?["ETag"] == "\"1\"")
        #expect(answer.info.isStored)
        #expect(
            answer.fields["Cache-Status"]
                == "CacheEngine; fwd=stale; fwd-status=304; stored; ttl=60"
        )
        await stage.end()
    }

    /// A confirmation that ends the entry which it confirms.
    struct Refusal: Sendable {
        let directives: String
        var request: HeaderFields = [:]
        var tags = 0
        let reason: String
    }

    static let refusals: [Refusal] = [
        Refusal(directives: "no-store", reason: "response-no-store"),
        Refusal(directives: "private, max-age=60", reason: "response-private"),
        Refusal(directives: "max-age=60", tags: 257, reason: "too-many-tags"),
    ]

    @Test("a confirmation that may not be stored is reported as refused", arguments: refusals)
    func refusedConfirmationIsNotReportedAsStored(row: Refusal) async throws {
        let resource = Resource()
        let stage = try await Stage(resource) { $0.mode = .shared }
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        var fields: HeaderFields = ["Cache-Control": row.directives]
        let tags = (0..<row.tags).map { "tag\($0)" }
        if !tags.isEmpty { fields["Cache-Tag"] = tags.joined(separator: ", ") }
        resource.change(fields: fields)
        let answer = try await stage.get(Stage.url, row.request)
        #expect(answer.source == .revalidated && answer.body == "one")
        #expect(answer.info.isStored == false)
        #expect(answer.info.refusal?.description == row.reason)
        #expect(
            answer.fields["Cache-Status"]
                == "CacheEngine; fwd=stale; fwd-status=304; detail=\(row.reason)"
        )
        #expect(try await stage.holds() == false)
        await stage.end()
    }

    /// A request whose own credentials or cookie keep what confirms an entry from being stored.
    struct PersonalRequest: Sendable {
        var fields: HeaderFields = ["Cache-Control": "max-age=60"]
        var ageSeconds = 61.0
        let request: HeaderFields
        let reason: String
    }

    static let personalRequests: [PersonalRequest] = [
        PersonalRequest(
            request: ["Authorization": "Basic YTpi"],
            reason: "request-authorized"
        ),
        PersonalRequest(
            ageSeconds: 1,
            request: ["Authorization": "Basic YTpi", "Cache-Control": "no-cache"],
            reason: "request-authorized"
        ),
        PersonalRequest(
            fields: ["Last-Modified": Stage.date(-864_000)],
            ageSeconds: 172_800,
            request: ["Cookie": "a=b"],
            reason: "not-fresh-nor-cacheable"
        ),
    ]

    @Test(
        "a confirmation that only this request keeps from being stored leaves the entry as it was",
        arguments: personalRequests
    )
    func confirmationForOneClientEndsNoEntry(row: PersonalRequest) async throws {
        let resource = Resource(row.fields)
        let stage = try await Stage(resource) { $0.mode = .shared }
        _ = try await stage.get()
        stage.clock.advance(seconds: row.ageSeconds)
        let answer = try await stage.get(Stage.url, row.request)
        #expect(answer.source == .revalidated && answer.body == "one")
        #expect(answer.info.isStored == false)
        #expect(answer.info.refusal?.description == row.reason)
        #expect(try await stage.holds())
        // It was not freshened either: the next client asks if it must.
        let isFresh = row.ageSeconds < 60
        #expect(try await stage.get().source == (isFresh ? .fresh : .revalidated))
        #expect(stage.origin.count == (isFresh ? 2 : 3))
        #expect(try await stage.get().source == .fresh)
        await stage.end()
    }

    @Test("a refresh with one client's credentials ends no entry")
    func refreshWithCredentialsEndsNoEntry() async throws {
        let resource = Resource(["Cache-Control": "max-age=60, stale-while-revalidate=600"])
        let stage = try await Stage(resource) { $0.mode = .shared }
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        let authorized: HeaderFields = ["Authorization": "Basic YTpi"]
        #expect(try await stage.get(Stage.url, authorized).source == .stale)
        #expect(stage.origin.count == 2)
        #expect(try await stage.get().source == .stale)
        #expect(try await stage.get().source == .fresh)
        await stage.end()
    }

    @Test("RFC 9211: a fresh response that a client wants confirmed is forwarded for the request")
    func freshResponseIsForwardedForTheRequest() async throws {
        let resource = Resource()
        let stage = try await Stage(resource)
        _ = try await stage.get()
        let reload = try await stage.get(Stage.url, ["Cache-Control": "no-cache"])
        #expect(
            reload.fields["Cache-Status"]
                == "CacheEngine; fwd=request; fwd-status=304; stored; ttl=60"
        )
        let unstored = try await stage.get(Stage.url, ["Cache-Control": "no-store"])
        #expect(
            unstored.fields["Cache-Status"]
                == "CacheEngine; fwd=request; fwd-status=200; detail=request-no-store"
        )
        // The response's own directive makes each use of it that of a stale one.
        resource.change(fields: ["Cache-Control": "no-cache, max-age=60"])
        _ = try await stage.get(Stage.url, ["Cache-Control": "no-cache"])
        #expect(try await stage.get().fields["Cache-Status"]?.contains("fwd=stale") == true)
        resource.change(body: "two", tag: "\"2\"")
        #expect(try await stage.get().fields["Cache-Status"]?.contains("fwd=stale") == true)
        await stage.end()
    }

    @Test("H7: a caller who set the condition gets the 304, from the store or from the origin")
    func callersOwnConditionIsAnsweredWith304() async throws {
        let stage = try await Stage(Resource())
        let wish: HeaderFields = ["If-None-Match": "\"1\""]
        let passed = try await stage.get(Stage.url, wish)
        #expect(passed.status == 304)
        #expect(passed.source == .origin)
        #expect(try await stage.holds() == false)
        _ = try await stage.get()
        #expect(stage.origin.count == 2)

        let fresh = try await stage.get(Stage.url, wish)
        #expect(fresh.status == 304)
        #expect(fresh.source == .fresh)
        #expect(fresh.body.isEmpty)
        #expect(fresh.fields["Content-Length"] == nil)
        #expect(fresh.fields["ETag"] == "\"1\"")
        #expect(stage.origin.count == 2)

        stage.clock.advance(seconds: 61)
        let confirmed = try await stage.get(Stage.url, wish)
        #expect(confirmed.status == 304)
        #expect(confirmed.source == .revalidated)
        #expect(stage.origin.count == 3)
        await stage.end()
    }

    @Test("H7: a condition that does not hold is answered in full, from the store")
    func otherConditionIsAnsweredInFull() async throws {
        let stage = try await Stage(Resource())
        _ = try await stage.get()
        let answer = try await stage.get(Stage.url, ["If-None-Match": "\"0\""])
        #expect(answer.status == 200)
        #expect(answer.body == "one")
        stage.clock.advance(seconds: 61)
        let stale = try await stage.get(Stage.url, ["If-None-Match": "\"0\""])
        #expect(stale.status == 200)
        #expect(stale.body == "one")
        #expect(stage.origin.requests[1].fields["If-None-Match"]?.contains("\"1\"") == true)
        await stage.end()
    }

    @Test("H8: both validators are sent when both are stored, or only the strongest")
    func bothValidatorsAreSent() async throws {
        let fields: HeaderFields = [
            "Cache-Control": "max-age=60", "Last-Modified": Stage.date(-1_000),
        ]
        for (validators, date) in [
            (CachingRules.Validators.all, Optional(Stage.date(-1_000))), (.strongestOnly, nil),
        ] {
            let stage = try await Stage(Resource(fields)) { $0.caching.validators = validators }
            _ = try await stage.get()
            stage.clock.advance(seconds: 61)
            _ = try await stage.get()
            #expect(stage.origin.requests[1].fields["If-None-Match"] == "\"1\"")
            #expect(stage.origin.requests[1].fields["If-Modified-Since"] == date)
            await stage.end()
        }
    }

    @Test("H8: Last-Modified alone makes a condition too")
    func dateAloneMakesACondition() async throws {
        let origin = ScriptedOrigin { request, _ in
            let fields: HeaderFields = [
                "Cache-Control": "max-age=60", "Last-Modified": Stage.date(-1_000),
            ]
            return request.fields.contains("If-Modified-Since")
                ? OriginResponse(status: 304, fields: fields)
                : .whole(fields: fields, body: "hello")
        }
        let stage = try await Stage(origin)
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        #expect(try await stage.get().source == .revalidated)
        #expect(origin.requests[1].fields["If-None-Match"] == nil)
        await stage.end()
    }

    @Test("H9: a changed response replaces the old one; a reader of the old bytes finishes on them")
    func changedAnswerReplacesTheOldOne() async throws {
        let resource = Resource(body: "one")
        let stage = try await Stage(resource)
        _ = try await stage.get()
        let running = try await stage.cache.respond(to: CacheRequest(url: Stage.url))
        #expect(running.info.source == .fresh)

        resource.change(body: "two", tag: "\"2\"")
        stage.clock.advance(seconds: 61)
        #expect(try await stage.get().body == "two")
        let stored = try await stage.cache.storedResponse(for: CacheRequest(url: Stage.url))
        #expect(try await stored?.body.collect().text == "two")
        #expect(try await running.body.collect().text == "one")
        #expect(await stage.cache.statistics.memory.entries == 1)
        await stage.end()
    }

    @Test("H9: what replaces a response without being storable still ends its life")
    func unstorableReplacementEndsTheOldAnswer() async throws {
        let stage = try await Stage.afterUnstorableChange()
        #expect(try await stage.get().body == "two")
        #expect(try await stage.holds() == false)
        await stage.end()
    }

    @Test("H10: a 304 merges its fields, except those that describe the stored content")
    func confirmationMergesFields() async throws {
        let origin = ScriptedOrigin { request, number in
            if request.fields.contains("If-None-Match") {
                return OriginResponse(
                    status: 304,
                    fields: [
                        "Cache-Control": "max-age=90", "ETag": "\"1\"", "X-Count": "2",
                        "Content-Length": "999", "Content-Encoding": "gzip",
                        "Connection": "X-Hop", "X-Hop": "1",
                    ]
                )
            }
            return .whole(
                fields: [
                    "Cache-Control": "max-age=60", "ETag": "\"1\"", "X-Count": "1",
                    "X-Kept": "yes", "Content-Type": "text/plain",
                ],
                body: "hello"
            )
        }
        let stage = try await Stage(origin)
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        for source in [CacheInfo.Source.revalidated, .fresh] {
            let answer = try await stage.get()
            #expect(answer.source == source)
            #expect(answer.info.remainingSeconds == 90)
            #expect(answer.fields["X-Count"] == "2")
            #expect(answer.fields["X-Kept"] == "yes")
            #expect(answer.fields["Content-Type"] == "text/plain")
            #expect(answer.fields["Content-Length"] == "5")
            #expect(answer.fields["Content-Encoding"] == nil)
            #expect(answer.fields["X-Hop"] == nil)
        }
        await stage.end()
    }

    /// A stored response and its 304, one of which has a directive that names a field of the other.
    struct Naming: Sendable {
        let stored: HeaderFields
        let confirming: HeaderFields
        let name: String
        /// The value in the response to the client that caused the 304.
        let asked: String?
    }

    static let namings: [Naming] = [
        Naming(
            stored: ["Cache-Control": "max-age=60, private=\"X-User\"", "X-User": "ada"],
            confirming: ["X-User": "bob"],
            name: "X-User",
            asked: "bob"
        ),
        Naming(
            stored: ["Cache-Control": "max-age=60, private=\"Set-Cookie\"", "Set-Cookie": "a=1"],
            confirming: ["Set-Cookie": "b=2"],
            name: "Set-Cookie",
            asked: "b=2"
        ),
        Naming(
            stored: ["Cache-Control": "max-age=60", "X-A": "1"],
            confirming: ["Cache-Control": "max-age=60, no-cache=\"X-A\""],
            name: "X-A",
            asked: nil
        ),
        Naming(
            stored: ["CDN-Cache-Control": "max-age=60, private=\"X-A\";v=1"],
            confirming: ["X-A": "1"],
            name: "X-A",
            asked: "1"
        ),
    ]

    @Test(
        "H10: a field that the directives of either response name is not served to other clients",
        arguments: namings
    )
    func namedFieldsStayOutOfWhatIsConfirmed(row: Naming) async throws {
        let origin = ScriptedOrigin { request, _ in
            let isConfirmed = request.fields.contains("If-None-Match")
            var fields = isConfirmed ? row.confirming : row.stored
            fields["ETag"] = "\"1\""
            return isConfirmed
                ? OriginResponse(status: 304, fields: fields)
                : .whole(fields: fields, body: "hello")
        }
        let stage = try await Stage(origin) {
            $0.mode = .shared
            $0.caching.cookies = .store
        }
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        let confirmed = try await stage.get()
        #expect(confirmed.source == .revalidated && confirmed.body == "hello")
        #expect(confirmed.fields[row.name] == row.asked)
        let hit = try await stage.get()
        #expect(hit.source == .fresh && hit.body == "hello")
        #expect(hit.fields[row.name] == nil)
        await stage.end()
    }

    @Test(
        "H10: the cookie of a 304 is for the client that caused it, unless cookies are stored",
        arguments: [CachingRules.Cookies.refuse, .strip, .store]
    )
    func cookieOfAConfirmation(cookies: CachingRules.Cookies) async throws {
        let resource = Resource()
        let stage = try await Stage(resource) {
            $0.mode = .shared
            $0.caching.cookies = cookies
        }
        _ = try await stage.get()
        resource.change(fields: ["Cache-Control": "max-age=60", "Set-Cookie": "sid=1"])
        stage.clock.advance(seconds: 61)
        let confirmed = try await stage.get()
        #expect(confirmed.source == .revalidated && confirmed.body == "one")
        #expect(confirmed.fields.values("Set-Cookie") == ["sid=1"])
        let hit = try await stage.get()
        #expect(hit.source == .fresh)
        #expect(hit.fields.values("Set-Cookie") == (cookies == .store ? ["sid=1"] : []))
        await stage.end()
    }

    @Test("H10: a 304 with the strong form of a weak tag joins no other bytes to the stored ones")
    func confirmationLeavesAWeakTagWeak() async throws {
        let origin = ScriptedOrigin { request, _ in
            var fields: HeaderFields = ["Cache-Control": "max-age=60", "Vary": "Accept-Encoding"]
            if request.fields.contains("If-None-Match") {
                fields["ETag"] = "\"1\""
                return OriginResponse(status: 304, fields: fields)
            }
            fields["ETag"] = "W/\"1\""
            fields["Content-Encoding"] = "gzip"
            return .whole(fields: fields, body: "compressed")
        }
        let stage = try await Stage(origin)
        let coding: HeaderFields = ["Accept-Encoding": "gzip"]
        _ = try await stage.get(Stage.url, coding)
        stage.clock.advance(seconds: 61)
        let confirmed = try await stage.get(Stage.url, coding)
        #expect(confirmed.source == .revalidated)
        #expect(confirmed.fields.values("ETag") == ["W/\"1\""])
        let resuming: HeaderFields = [
            "Accept-Encoding": "gzip", "Range": "bytes=4-", "If-Range": "\"1\"",
        ]
        let whole = try await stage.get(Stage.url, resuming)
        #expect(whole.status == 200 && whole.body == "compressed")
        #expect(origin.count == 2)
        await stage.end()
    }

    @Test("H10: a bare 304 restores the original lifetime")
    func bareConfirmationRestoresTheLifetime() async throws {
        let origin = ScriptedOrigin { request, _ in
            request.fields.contains("If-None-Match")
                ? OriginResponse(status: 304)
                : .whole(fields: ["Cache-Control": "max-age=60", "ETag": "\"1\""], body: "hello")
        }
        let stage = try await Stage(origin)
        _ = try await stage.get()
        for round in 1...3 {
            stage.clock.advance(seconds: 61)
            #expect(try await stage.get().source == .revalidated)
            stage.clock.advance(seconds: 59)
            let fresh = try await stage.get()
            #expect(fresh.source == .fresh)
            #expect(fresh.info.remainingSeconds == 1)
            #expect(origin.count == 1 + round)
        }
        await stage.end()
    }

    @Test("H10: a HEAD freshens what is stored, or ends it")
    func headFreshensOrEnds() async throws {
        let resource = Resource()
        let stage = try await Stage(resource)
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        #expect(try await stage.get(method: .head).status == 200)
        #expect(stage.origin.requests[1].method == .head)
        stage.clock.advance(seconds: 30)
        #expect(try await stage.get().source == .fresh)

        stage.clock.advance(seconds: 61)
        resource.change(body: "another", tag: "\"2\"")
        #expect(try await stage.get(method: .head).fields["ETag"] == "\"2\"")
        #expect(try await stage.holds() == false)
        #expect(try await stage.get().body == "another")
        await stage.end()
    }

    @Test("H10: a HEAD that says 200 keeps no stored error")
    func headEndsAStoredError() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60"]
        let stage = try await Stage(ScriptedOrigin(status: 404, fields: fields))
        #expect(try await stage.get().status == 404)
        stage.clock.advance(seconds: 61)
        stage.origin.follow { request, _ in
            request.method == .head
                ? OriginResponse(status: 200, fields: fields) : .whole(fields: fields, body: "new")
        }
        #expect(try await stage.get(method: .head).status == 200)
        let answer = try await stage.get()
        #expect(answer.status == 200 && answer.body == "new")
        await stage.end()
    }

    @Test("H10: a HEAD that brings another Vary ends what is stored")
    func headWithAnotherVaryEndsTheEntry() async throws {
        let resource = Resource()
        let stage = try await Stage(resource)
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        resource.change(fields: ["Cache-Control": "max-age=60", "Vary": "X-A"])
        #expect(try await stage.get(method: .head).status == 200)
        #expect(try await stage.get(Stage.url, ["X-A": "1"]).source == .origin)
        await stage.end()
    }

    @Test("H10: a HEAD freshens no response that has no validator")
    func headFreshensNothingWithoutAValidator() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60"]
        let stage = try await Stage(ScriptedOrigin(fields: fields, body: "old"))
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        stage.origin.follow { request, _ in
            .whole(fields: fields, body: request.method == .head ? "" : "new")
        }
        #expect(try await stage.get(method: .head).source == .origin)
        #expect(try await stage.get().body == "new")
        await stage.end()
    }

    @Test("H10: a 304 that speaks of another representation is not believed")
    func confirmationOfAnotherTagIsNotBelieved() async throws {
        let origin = ScriptedOrigin { request, number in
            if request.fields.contains("If-None-Match") {
                return OriginResponse(status: 304, fields: ["ETag": "\"9\""])
            }
            return .whole(
                fields: ["Cache-Control": "max-age=60", "ETag": "\"\(number)\""],
                body: "\(number)"
            )
        }
        let stage = try await Stage(origin)
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        let answer = try await stage.get()
        #expect(answer.source == .origin)
        #expect(answer.body == "3")
        #expect(
            origin.requests.map { $0.fields.contains("If-None-Match") } == [false, true, false]
        )
        await stage.end()
    }
}
