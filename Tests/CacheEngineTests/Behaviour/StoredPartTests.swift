import CacheEngine
import CacheTestSupport
import Testing

/// Stored parts: the ranges they answer, and the bytes fetched to complete a range.
@Suite struct StoredPartTests {
    static let weak: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "W/\"1\""]

    @Test("A part without a strong validator answers exactly its own range, and is never combined")
    func weakPartAnswersItsOwnRangeOnly() async throws {
        for fields in [Self.weak, ["Cache-Control": "max-age=60"]] as [HeaderFields] {
            let stage = try await Stage(RangeTests.origin(fields))
            func part(_ range: String) async throws -> CacheInfo.Source {
                let answer = try await stage.get(Stage.url, ["Range": "bytes=\(range)"])
                #expect(answer.status == 206)
                let bounds = range.split(separator: "-").compactMap { Int($0) }
                #expect(answer.body == String(Array(RangeTests.alphabet)[bounds[0]...bounds[1]]))
                return answer.source
            }
            #expect(try await part("0-4") == .origin)
            #expect(try await part("0-4") == .fresh)
            #expect(try await part("1-3") == .origin, "Not a part of the part")
            #expect(try await part("4-9") == .origin)
            #expect(try await part("4-9") == .fresh)
            #expect(try await part("0-9") == .origin, "Two parts are not one")
            #expect(stage.origin.requests.allSatisfy { $0.fields["If-Range"] == nil })
            #expect(try await stage.get().source == .origin)
            await stage.end()
        }
    }

    struct Rest: CustomTestStringConvertible, Sendable {
        let stored: [String]
        let asked: String
        /// The range that the origin is asked for.
        let fetched: String
        let body: String
        var testDescription: String { "\(asked) of \(stored)" }
    }

    static let rests: [Rest] = [
        .init(stored: ["0-4"], asked: "0-9", fetched: "5-9", body: "abcdefghij"),
        .init(stored: ["0-4"], asked: "2-25", fetched: "5-25", body: "cdefghijklmnopqrstuvwxyz"),
        .init(stored: ["10-14"], asked: "8-12", fetched: "8-9", body: "ijklm"),
        .init(stored: ["0-4", "10-14"], asked: "3-11", fetched: "5-9", body: "defghijkl"),
        .init(stored: ["10-14"], asked: "8-16", fetched: "8-16", body: "ijklmnopq"),
        .init(stored: ["0-4"], asked: "6-9", fetched: "6-9", body: "ghij"),
    ]

    @Test("Of a range that is stored but for one gap, the gap alone is fetched", arguments: rests)
    func onlyTheRestIsFetched(row: Rest) async throws {
        for isStale in [false, true] {
            let stage = try await Stage(
                RangeTests.origin([
                    "Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Type": "text/plain",
                ])
            )
            for range in row.stored {
                _ = try await stage.get(Stage.url, ["Range": "bytes=\(range)"])
            }
            if isStale { stage.clock.advance(seconds: 61) }
            let answer = try await stage.get(Stage.url, ["Range": "bytes=\(row.asked)"])
            #expect(answer.status == 206)
            #expect(answer.body == row.body)
            #expect(answer.fields["Content-Range"] == "bytes \(row.asked)/26")
            #expect(answer.fields["Content-Length"] == String(row.body.utf8.count))
            let request = try #require(stage.origin.requests.last)
            #expect(request.fields["Range"] == "bytes=\(row.fetched)")
            #expect(request.fields["If-Range"] == (row.fetched == row.asked ? nil : "\"1\""))
            let again = try await stage.get(Stage.url, ["Range": "bytes=\(row.asked)"])
            #expect(again.source == .fresh)
            #expect(again.body == row.body)
            await stage.end()
        }
    }

    @Test(
        "A part whose body has another length than its Content-Range states is not called stored",
        arguments: [true, false]
    )
    func partOfAnotherLengthIsRefused(isLengthKnown: Bool) async throws {
        let stage = try await Stage(
            ScriptedOrigin { _, _ in
                var fields = Self.weak
                fields["Content-Range"] = "bytes 4-9/10"
                if isLengthKnown { fields["Content-Length"] = "5" }
                let body = BodyStream(ByteChunk("01234"))
                return OriginResponse(status: 206, fields: fields, body: body)
            }
        )
        let wish: HeaderFields = ["Range": "bytes=4-9"]
        let answer = try await stage.get(Stage.url, wish)
        #expect(answer.status == 206 && answer.body == "01234")
        if isLengthKnown {
            #expect(answer.info.isStored == false)
            #expect(answer.info.refusal?.description == "invalid-part")
            #expect(answer.fields["Cache-Status"]?.hasSuffix("; detail=invalid-part") == true)
        }
        let refusals = await stage.cache.statistics.refusals
        #expect(refusals.map { "\($0.key) \($0.value)" } == ["invalid-part 1"])
        #expect(try await stage.holds(Stage.url, wish) == false)
        await stage.end()
    }

    @Test("A part of a whole of unknown size, which answers no request, is not called stored")
    func partOfUnknownSizeIsRefused() async throws {
        for fields in [Self.weak, ["Cache-Control": "max-age=60", "ETag": "\"1\""]] {
            let stage = try await Stage(RangeTests.origin(fields))
            _ = try await stage.get(Stage.url, ["Range": "bytes=10-14"])
            let isStrong = fields["ETag"] == "\"1\""
            stage.origin.follow { _, _ in
                var part = fields
                part["Content-Range"] = "bytes 0-4/*"
                return .whole(status: 206, fields: part, body: "abcde")
            }
            if isStrong {
                // It joins the part whose size is known.
                let joined = try await stage.get(Stage.url, ["Range": "bytes=0-4"])
                #expect(joined.info.isStored && joined.body == "abcde")
                #expect(try await stage.get(Stage.url, ["Range": "bytes=1-3"]).source == .fresh)
            }
            let other = "http://example.com/b"
            for _ in 1...2 {
                let answer = try await stage.get(other, ["Range": "bytes=0-4"])
                #expect(answer.body == "abcde" && answer.source == .origin)
                #expect(!answer.info.isStored)
                #expect(answer.info.refusal == StoreRefusalReason("invalid-part"))
                #expect(answer.fields["Cache-Status"]?.contains("stored") == false)
            }
            #expect(try await stage.holds(other, ["Range": "bytes=0-4"]) == false)
            let kept = try await stage.get(Stage.url, ["Range": "bytes=10-14"])
            #expect(kept.source == .fresh && kept.body == "klmno")
            await stage.end()
        }
    }

    @Test("A stored part stands in where a whole would, for the bytes that it holds")
    func aStoredPartStandsIn() async throws {
        let error: HeaderFields = [
            "Cache-Control": "max-age=60, stale-if-error=1000", "ETag": "\"1\"",
        ]
        let plain: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"1\""]
        let must: HeaderFields = ["Cache-Control": "max-age=60, must-revalidate", "ETag": "\"1\""]
        let bits = CachePolicy(.fallbackToCacheIfLoadFails)
        let listed = CachePolicy(fallback: .always(statuses: [503]))
        let rows: [(HeaderFields, CachePolicy, status: Int?, standsIn: Bool)] = [
            (plain, bits, nil, true), (must, bits, nil, true), (plain, .standard, nil, true),
            (error, .standard, 503, true), (plain, listed, 503, true),
            (must, .standard, nil, false),
            (plain, bits, 503, false), (plain, .revalidate, nil, false),
            (plain, .reload, nil, false),
        ]
        for (fields, policy, status, standsIn) in rows {
            for (range, isHeld) in [
                ("5-9", true), ("6-8", true), ("8-12", false), ("20-25", false),
            ] {
                let stage = try await Stage(RangeTests.origin(fields))
                _ = try await stage.get(Stage.url, ["Range": "bytes=5-9"])
                stage.clock.advance(seconds: 100)
                stage.origin.cutOff()
                if let status {
                    stage.origin.follow { _, _ in .whole(status: status, body: "busy") }
                }
                let answer = try? await stage.get(
                    Stage.url,
                    ["Range": "bytes=\(range)"],
                    policy: policy
                )
                let isServed = standsIn && isHeld
                #expect((answer?.source == .fallback) == isServed, "\(range) \(policy)")
                #expect((answer?.status) == (isServed ? 206 : status), "\(range) \(policy)")
                if isServed, range == "6-8" { #expect(answer?.body == "ghi") }
                await stage.end()
            }
        }
    }

    @Test("X19: a stored part never stands in for the whole")
    func aStoredPartIsNoWhole() async throws {
        let stage = try await Stage(RangeTests.origin())
        _ = try await stage.get(Stage.url, ["Range": "bytes=0-4"])
        stage.clock.advance(seconds: 100)
        stage.origin.cutOff()
        let policy = CachePolicy(.fallbackToCacheIfLoadFails)
        for method in [HTTPMethod.get, .head] {
            await #expect(throws: CacheError.self) {
                try await stage.get(policy: policy, method: method)
            }
        }
        await stage.end()
    }

    /// An origin with one version of a resource, with or without support for If-Range.
    private static func scripted(_ request: OriginRequest, _ tag: String, heedsIfRange: Bool)
        -> OriginResponse
    {
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": tag]
        let body = tag == "\"1\"" ? "abcdefghij" : "ABCDEFGHIJ"
        guard let range = request.fields["Range"],
            !heedsIfRange || request.fields["If-Range"] == nil
        else { return .whole(fields: fields, body: body) }
        let bounds = range.dropFirst(6).split(separator: "-").compactMap { Int($0) }
        var part = fields
        part["Content-Range"] = "bytes \(bounds[0])-\(bounds[1])/10"
        return .whole(
            status: 206,
            fields: part,
            body: String(Array(body)[bounds[0]...bounds[1]])
        )
    }

    @Test("A rest that is of another version, or not what was asked for, is not joined")
    func restOfAnotherVersionIsNotJoined() async throws {
        for heedsIfRange in [true, false] {
            let stage = try await Stage(
                ScriptedOrigin { request, _ in
                    Self.scripted(request, "\"1\"", heedsIfRange: heedsIfRange)
                }
            )
            _ = try await stage.get(Stage.url, ["Range": "bytes=0-4"])
            stage.origin.follow { request, _ in
                Self.scripted(request, "\"2\"", heedsIfRange: heedsIfRange)
            }
            let answer = try await stage.get(Stage.url, ["Range": "bytes=2-7"])
            #expect(answer.status == 206)
            #expect(answer.body == "CDEFGH")
            #expect(answer.fields["ETag"] == "\"2\"")
            let later = try await stage.get(Stage.url, ["Range": "bytes=2-4"])
            #expect(later.body == "CDE")
            await stage.end()
        }
    }

    private static let long = (0..<1_000).map { String($0 % 10) }.joined()

    /// An origin of a thousand digits, which answers single ranges.
    private static func longOrigin() -> ScriptedOrigin {
        ScriptedOrigin { request, _ in
            var fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"1\""]
            let text = request.fields["Range"]?.dropFirst(6) ?? ""
            let bounds = text.split(separator: "-").compactMap { Int($0) }
            guard bounds.count == 2 else { return .whole(fields: fields, body: long) }
            fields["Content-Range"] = "bytes \(text)/1000"
            let body = String(Array(long)[bounds[0]...bounds[1]])
            return .whole(status: 206, fields: fields, body: body)
        }
    }

    struct Addition: CustomTestStringConvertible, Sendable {
        let stored: [String]
        let added: String
        let isJoined: Bool
        var testDescription: String { "\(added) to \(stored)" }
    }

    static let additions: [Addition] = [
        .init(stored: ["0-159"], added: "160-168", isJoined: false),
        .init(stored: ["0-159"], added: "160-169", isJoined: true),
        .init(stored: ["0-159"], added: "500-508", isJoined: false),
        .init(stored: ["0-159"], added: "500-509", isJoined: true),
        .init(stored: ["0-489", "491-900"], added: "490-490", isJoined: true),
        .init(stored: ["0-489", "491-900"], added: "901-901", isJoined: false),
        .init(stored: ["1-998"], added: "999-999", isJoined: false),
        .init(stored: ["0-998"], added: "999-999", isJoined: true),
        .init(stored: ["0-15"], added: "16-16", isJoined: true),
    ]

    @Test(
        "A tiny part is joined only where it closes a gap or completes the whole",
        arguments: additions
    )
    func tinyPartsAreNotJoined(row: Addition) async throws {
        let stage = try await Stage(Self.longOrigin())
        for range in row.stored { _ = try await stage.get(Stage.url, ["Range": "bytes=\(range)"]) }
        let bounds = row.added.split(separator: "-").compactMap { Int($0) }
        let body = String(Array(Self.long)[bounds[0]...bounds[1]])
        for round in 1...2 {
            let part = try await stage.get(Stage.url, ["Range": "bytes=\(row.added)"])
            #expect(part.status == 206 && part.body == body)
            #expect(part.source == (round == 2 && row.isJoined ? .fresh : .origin))
        }
        for range in row.stored {
            let part = try await stage.get(Stage.url, ["Range": "bytes=\(range)"])
            #expect(part.source == .fresh, "\(range)")
        }
        let isWhole = row.stored == ["0-998"]
        #expect(try await stage.get().source == (isWhole ? .fresh : .origin))
        await stage.end()
    }

    @Test("X19: requests for the bytes behind a large part do not each copy it")
    func bytesBehindALargePartDoNotCopyIt() async throws {
        let store = RecordingStore()
        let stage = try await Stage(Self.longOrigin()) { $0.backing = .custom(store) }
        _ = try await stage.get(Stage.url, ["Range": "bytes=0-799"])
        for position in 800..<850 {
            let range = "bytes=\(position)-\(position)"
            let part = try await stage.get(Stage.url, ["Range": range])
            #expect(part.body == String(position % 10))
            try await stage.cache.flush()
        }
        #expect(await store.stores == 1)
        #expect(try await stage.get(Stage.url, ["Range": "bytes=0-799"]).source == .fresh)
        await stage.end()
    }

    @Test("A part of a newer version ends the life of an older whole")
    func partOfANewerVersionReplacesAWhole() async throws {
        let stage = try await Stage(RangeTests.origin())
        _ = try await stage.get()
        let newer: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"2\""]
        stage.origin.follow { _, _ in
            var part = newer
            part["Content-Range"] = "bytes 0-1/26"
            return .whole(status: 206, fields: part, body: "AB")
        }
        _ = try await stage.get(
            Stage.url,
            ["Range": "bytes=0-1"],
            policy: .reload
        )
        stage.origin.follow { _, _ in .whole(fields: newer, body: "new") }
        #expect(try await stage.get().body == "new")
        await stage.end()
    }
}
