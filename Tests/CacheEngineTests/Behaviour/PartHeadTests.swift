import CacheEngine
import CacheTestSupport
import Testing

/// The heads of parts: fields that an origin leaves out, fields of one content only, and dates.
@Suite struct PartHeadTests {
    private static let text = RangeTests.alphabet

    /// An origin that answers a range with `fields`, and without `described` if the request has
    /// If-Range (RFC 9110 §15.3.7).
    private static func terse(_ fields: HeaderFields, _ described: HeaderFields) -> ScriptedOrigin {
        ScriptedOrigin { request, _ in
            var fields = fields
            if !request.fields.contains("If-Range") {
                for (name, value) in described.pairs { fields.append(name, value) }
            }
            guard let range = request.fields["Range"] else {
                return .whole(fields: fields, body: text)
            }
            let bounds = range.dropFirst(6).split(separator: "-").compactMap { Int($0) }
            fields["Content-Range"] = "bytes \(bounds[0])-\(bounds[1])/26"
            let letters = Array(text)[bounds[0]...bounds[1]]
            return .whole(status: 206, fields: fields, body: String(letters))
        }
    }

    private static let kept: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"1\""]

    @Test("D27: a part whose head lacks the fields that its client has answers no other client")
    func partForIfRangeAnswersNoOther() async throws {
        let described: HeaderFields = ["Content-Type": "text/a", "Content-Encoding": "gzip"]
        let stage = try await Stage(Self.terse(Self.kept, described))
        let wish: HeaderFields = ["Range": "bytes=5-25", "If-Range": "\"1\""]
        let first = try await stage.get(Stage.url, wish)
        #expect(first.status == 206 && first.fields["Content-Type"] == nil)
        #expect(first.info.refusal == StoreRefusalReason("invalid-part"))
        for range in ["5-25", "0-25"] {
            let answer = try await stage.get(Stage.url, ["Range": "bytes=\(range)"])
            #expect(answer.status == 206, "\(range)")
            #expect(answer.fields["Content-Type"] == "text/a", "\(range)")
            #expect(answer.fields["Content-Encoding"] == "gzip", "\(range)")
        }
        #expect(stage.origin.requests.last?.fields["If-Range"] == "\"1\"", "the gap is terse too")
        let whole = try await stage.get()
        #expect(whole.source == .fresh && whole.body == Self.text)
        #expect(whole.fields["Content-Type"] == "text/a")
        #expect(whole.fields["Content-Encoding"] == "gzip")
        #expect(stage.origin.count == 3)
        await stage.end()
    }

    @Test("D27: a part for If-Range that has Content-Type is stored, and so is one that is joined")
    func partForIfRangeWithAWholeHeadIsStored() async throws {
        let wish: HeaderFields = ["Range": "bytes=5-9", "If-Range": "\"1\""]
        var typed = Self.kept
        typed["Content-Type"] = "text/a"
        let stage = try await Stage(Self.terse(typed, [:]))
        _ = try await stage.get(Stage.url, wish)
        #expect(try await stage.get(Stage.url, ["Range": "bytes=5-9"]).source == .fresh)
        await stage.end()

        let joining = try await Stage(Self.terse(Self.kept, ["Content-Type": "text/a"]))
        _ = try await joining.get(Stage.url, ["Range": "bytes=0-4"])
        _ = try await joining.get(Stage.url, wish)
        let both = try await joining.get(Stage.url, ["Range": "bytes=0-9"])
        #expect(both.source == .fresh && both.fields["Content-Type"] == "text/a")
        await joining.end()
    }

    @Test("D28: the digest of the whole content is not that of its parts")
    func digestOfTheWholeIsOnTheWholeAlone() async throws {
        var fields = Self.kept
        fields["Content-Digest"] = "sha-256=:whole:"
        fields["Repr-Digest"] = "sha-256=:whole:"
        let stage = try await Stage(Self.terse(fields, [:]))
        #expect(try await stage.get().fields["Content-Digest"] == "sha-256=:whole:")
        #expect(try await stage.get().source == .fresh)
        for range in ["0-4", "0-1,4-5,8-9", "90-"] {
            let answer = try await stage.get(Stage.url, ["Range": "bytes=\(range)"])
            #expect(answer.status == (range == "90-" ? 416 : 206))
            #expect(answer.fields["Content-Digest"] == nil, "\(range)")
            #expect(answer.fields["Repr-Digest"] == "sha-256=:whole:", "\(range)")
        }
        #expect(try await stage.get().fields["Content-Digest"] == "sha-256=:whole:")
        #expect(stage.origin.count == 1)
        await stage.end()
    }

    @Test("D28: the digest of one part is not that of the parts together")
    func digestOfAPartIsNotOfTheWhole() async throws {
        let origin = ScriptedOrigin { request, _ in
            let isFirst = request.fields["Range"] == "bytes=0-4"
            var fields = Self.kept
            fields["Content-Digest"] = isFirst ? "sha-256=:first:" : "sha-256=:second:"
            fields["Content-Range"] = isFirst ? "bytes 0-4/10" : "bytes 5-9/10"
            return .whole(status: 206, fields: fields, body: isFirst ? "abcde" : "fghij")
        }
        let stage = try await Stage(origin)
        _ = try await stage.get(Stage.url, ["Range": "bytes=0-4"])
        let range = try await stage.get(Stage.url, ["Range": "bytes=0-9"])
        #expect(range.body == "abcdefghij" && range.fields["Content-Digest"] == nil)
        let whole = try await stage.get()
        #expect(whole.source == .fresh && whole.body == "abcdefghij")
        #expect(whole.fields["Content-Digest"] == nil)
        await stage.end()
    }

    @Test(
        "D28: what confirms a response has the digest of its own content, which is empty",
        arguments: [HTTPMethod.get, .head]
    )
    func digestOfAConfirmationIsNotKept(method: HTTPMethod) async throws {
        let origin = ScriptedOrigin { request, number in
            var fields = Self.kept
            fields["Content-Digest"] = number == 1 ? "sha-256=:whole:" : "sha-256=:empty:"
            fields["Repr-Digest"] = "sha-256=:whole:"
            if number == 1 { return .whole(fields: fields, body: Self.text) }
            return OriginResponse(status: request.method == .head ? 200 : 304, fields: fields)
        }
        let stage = try await Stage(origin)
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        #expect(try await stage.get(method: method).source == .revalidated)
        let hit = try await stage.get()
        #expect(hit.source == .fresh && hit.body == Self.text)
        #expect(hit.fields.values("Content-Digest") == ["sha-256=:whole:"])
        #expect(hit.fields.values("Repr-Digest") == ["sha-256=:whole:"])
        let notModified = try await stage.get(Stage.url, ["If-None-Match": "\"1\""])
        #expect(notModified.status == 304 && notModified.source == .fresh)
        #expect(notModified.fields["Content-Digest"] == nil)
        #expect(notModified.fields["Repr-Digest"] == "sha-256=:whole:")
        #expect(stage.origin.count == 2)
        await stage.end()
    }

    @Test(
        "D29: a Last-Modified is strong by the origin's own Date alone, also after a 304",
        arguments: [true, false],
        [true, false]
    )
    func partsAreNotJoinedByTheDateOfTheCache(hasDate: Bool, isConfirmed: Bool) async throws {
        let modified = Stage.date(-5)
        let origin = ScriptedOrigin { request, number in
            let isFirst = request.fields["Range"] == "bytes=0-4"
            var fields: HeaderFields = [
                "Cache-Control": "max-age=60, stale-while-revalidate=600",
                "Last-Modified": modified,
            ]
            // The parts after a 304 are strong by themselves.
            if hasDate || isConfirmed && !isFirst {
                fields["Date"] = Stage.date(isConfirmed && number > 1 ? 61 : 0)
            }
            if request.fields.contains("If-Modified-Since") {
                return OriginResponse(status: 304, fields: fields)
            }
            if request.fields["Range"] == nil { return .whole(fields: fields, body: "ABCDEFGHIJ") }
            fields["Content-Range"] = isFirst ? "bytes 0-4/10" : "bytes 5-9/10"
            return .whole(status: 206, fields: fields, body: isFirst ? "abcde" : "FGHIJ")
        }
        let stage = try await Stage(origin)
        _ = try await stage.get(Stage.url, ["Range": "bytes=0-4"])
        if isConfirmed {
            stage.clock.advance(seconds: 61)
            let stale = try await stage.get(Stage.url, ["Range": "bytes=0-4"])
            #expect(stale.source == .stale && stage.origin.count == 2)
        }
        _ = try await stage.get(Stage.url, ["Range": "bytes=5-9"])
        let whole = try await stage.get()
        #expect(whole.source == (hasDate ? .fresh : .origin))
        #expect(whole.body == (hasDate ? "abcdeFGHIJ" : "ABCDEFGHIJ"))
        await stage.end()
    }
}
