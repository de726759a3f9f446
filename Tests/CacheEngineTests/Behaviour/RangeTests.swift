import CacheEngine
import CacheTestSupport
import Testing

/// H18: ranges of stored responses, and stored parts.
@Suite struct RangeTests {
    static let alphabet = "abcdefghijklmnopqrstuvwxyz"

    /// An origin that answers a single range with a part, and any other request with the whole
    /// body.
    static func origin(
        _ fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"1\""]
    ) -> ScriptedOrigin {
        ScriptedOrigin { request, _ in
            if request.fields["If-None-Match"] == fields["ETag"], fields.contains("ETag") {
                return OriginResponse(status: 304, fields: fields)
            }
            guard let range = request.fields["Range"], range.hasPrefix("bytes=") else {
                return .whole(fields: fields, body: alphabet)
            }
            let bounds = range.dropFirst(6).split(separator: "-").compactMap { Int($0) }
            guard bounds.count == 2, bounds[0] < 26 else {
                return .whole(status: 416, fields: ["Content-Range": "bytes */26"])
            }
            let last = min(bounds[1], 25)
            var part = fields
            part["Content-Range"] = "bytes \(bounds[0])-\(last)/26"
            let letters = Array(alphabet)[bounds[0]...last]
            return .whole(status: 206, fields: part, body: String(letters))
        }
    }

    @Test(
        "H18: one range of a stored whole is answered",
        arguments: [
            ("bytes=0-0", "a", "bytes 0-0/26"), ("bytes=3-5", "def", "bytes 3-5/26"),
            ("bytes=20-", "uvwxyz", "bytes 20-25/26"), ("bytes=-2", "yz", "bytes 24-25/26"),
            ("bytes=24-99", "yz", "bytes 24-25/26"), ("bytes=-99", alphabet, "bytes 0-25/26"),
            ("bytes= 1-2", "bc", "bytes 1-2/26"), ("bytes=1-2,3-4", "bcde", "bytes 1-4/26"),
            ("bytes=0-99999999999999999999", alphabet, "bytes 0-25/26"),
            ("bytes=-18446744073709551616", alphabet, "bytes 0-25/26"),
        ]
    )
    func singleRangeIsAnswered(range: String, body: String, contentRange: String) async throws {
        let stage = try await Stage(Self.origin())
        _ = try await stage.get()
        let answer = try await stage.get(Stage.url, ["Range": range])
        #expect(answer.status == 206)
        #expect(answer.body == body)
        #expect(answer.fields["Content-Range"] == contentRange)
        #expect(answer.fields["Content-Length"] == String(body.utf8.count))
        #expect(answer.source == .fresh)
        #expect(stage.origin.count == 1)
        await stage.end()
    }

    @Test("H18: several ranges are answered as multipart/byteranges")
    func severalRangesAreAnsweredAsMultipart() async throws {
        let fields: HeaderFields = [
            "Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Type": "text/plain",
        ]
        let stage = try await Stage(Self.origin(fields))
        _ = try await stage.get()
        let answer = try await stage.get(Stage.url, ["Range": "bytes=0-1,5-6,-1"])
        #expect(answer.status == 206)
        #expect(answer.fields["Content-Range"] == nil)
        let type = try #require(answer.fields["Content-Type"])
        let prefix = "multipart/byteranges; boundary="
        try #require(type.hasPrefix(prefix))
        let boundary = type.dropFirst(prefix.count)
        func part(_ range: String, _ bytes: String) -> String {
            "--\(boundary)\r\nContent-Type: text/plain\r\nContent-Range: bytes \(range)/26\r\n\r\n"
                + bytes + "\r\n"
        }
        let whole = part("0-1", "ab") + part("5-6", "fg") + part("25-25", "z")
        #expect(answer.body == whole + "--\(boundary)--\r\n")
        #expect(answer.fields["Content-Length"] == String(answer.body.utf8.count))
        await stage.end()
    }

    @Test(
        "H18: If-Range decides between the part and the whole",
        arguments: [
            ("\"1\"", 206), ("\"2\"", 200), ("W/\"1\"", 200), (Stage.date(-1_000), 206),
            (Stage.date(-999), 200), ("garbage", 200),
        ]
    )
    func ifRangeDecides(validator: String, status: Int) async throws {
        let stage = try await Stage(
            Self.origin([
                "Cache-Control": "max-age=60", "ETag": "\"1\"", "Date": Stage.date(0),
                "Last-Modified": Stage.date(-1_000),
            ])
        )
        _ = try await stage.get()
        let answer = try await stage.get(
            Stage.url,
            ["Range": "bytes=0-1", "If-Range": validator]
        )
        #expect(answer.status == status)
        #expect(answer.body == (status == 206 ? "ab" : Self.alphabet))
        await stage.end()
    }

    @Test(
        "H18: a range past the end is a 416, and one that is none is ignored",
        arguments: [
            ("bytes=26-", 416), ("bytes=9223372036854775807-", 416),
            ("bytes=18446744073709551615-", 416), ("bytes=5-3", 200), ("bytes=", 200),
            ("bytes=a-b", 200), ("lines=1-2", 200), ("bytes=--1", 200), ("bytes=-0", 416),
            ("bytes=1-2,", 206),
        ]
    )
    func rangesThatCannotBeMet(range: String, status: Int) async throws {
        let stage = try await Stage(Self.origin())
        _ = try await stage.get()
        let answer = try await stage.get(Stage.url, ["Range": range])
        #expect(answer.status == status)
        if status == 416 {
            #expect(answer.fields["Content-Range"] == "bytes */26")
            #expect(answer.body.isEmpty)
        }
        if status == 200 { #expect(answer.body == Self.alphabet) }
        #expect(stage.origin.count == 1)
        await stage.end()
    }

    @Test("H18: parts with a strong validator are stored, combined, and in the end whole")
    func partsAreStoredAndCombined() async throws {
        let stage = try await Stage(Self.origin())
        func part(_ range: String) async throws -> (String, CacheInfo.Source) {
            let answer = try await stage.get(Stage.url, ["Range": "bytes=\(range)"])
            #expect(answer.status == 206)
            return (answer.body, answer.source)
        }
        #expect(try await part("0-4") == ("abcde", .origin))
        #expect(try await part("1-3") == ("bcd", .fresh))
        #expect(try await part("10-14") == ("klmno", .origin))
        #expect(try await part("11-12") == ("lm", .fresh))
        #expect(try await part("3-11") == ("defghijkl", .origin))
        #expect(try await part("0-14") == ("abcdefghijklmno", .fresh))
        #expect(stage.origin.count == 3)

        #expect(try await part("15-25") == ("pqrstuvwxyz", .origin))
        let whole = try await stage.get()
        #expect(whole.status == 200)
        #expect(whole.body == Self.alphabet)
        #expect(whole.source == .fresh)
        #expect(whole.fields["Content-Range"] == nil)
        #expect(whole.fields["Content-Length"] == "26")
        #expect(stage.origin.count == 4)
        await stage.end()
    }

    @Test("H18: several stored parts are answered as multipart, without the origin")
    func storedPartsAnswerSeveralRanges() async throws {
        let stage = try await Stage(Self.origin())
        for range in ["bytes=0-4", "bytes=10-14"] {
            _ = try await stage.get(Stage.url, ["Range": range])
        }
        let answer = try await stage.get(Stage.url, ["Range": "bytes=1-2,11-12"])
        #expect(answer.source == .fresh)
        #expect(answer.body.contains("\r\n\r\nbc\r\n"))
        #expect(answer.body.contains("\r\n\r\nlm\r\n"))
        #expect(stage.origin.count == 2)
        await stage.end()
    }

    @Test("H18: parts without a strong validator, or of another version, are not combined")
    func partsOfDifferentVersionsAreNotCombined() async throws {
        for tags in [["W/\"1\"", "W/\"1\""], ["\"1\"", "\"2\""]] {
            let origin = ScriptedOrigin { request, number in
                let isFirst = request.fields["Range"] == "bytes=0-1"
                return .whole(
                    status: 206,
                    fields: [
                        "Cache-Control": "max-age=60", "ETag": tags[isFirst ? 0 : 1],
                        "Content-Range": isFirst ? "bytes 0-1/4" : "bytes 2-3/4",
                    ],
                    body: isFirst ? "ab" : "CD"
                )
            }
            let stage = try await Stage(origin)
            for range in ["bytes=0-1", "bytes=2-3"] {
                _ = try await stage.get(Stage.url, ["Range": range])
            }
            let whole = try await stage.cache.storedResponse(
                for: CacheRequest(url: Stage.url, fields: ["Range": "bytes=0-3"])
            )
            #expect(whole == nil)
            await stage.end()
        }
    }

    @Test("H18: a whole request is not answered from parts")
    func wholeRequestIsNotAnsweredFromParts() async throws {
        let stage = try await Stage(Self.origin())
        _ = try await stage.get(Stage.url, ["Range": "bytes=0-4"])
        let whole = try await stage.get()
        #expect(whole.status == 200)
        #expect(whole.body == Self.alphabet)
        #expect(whole.source == .origin)
        #expect(stage.origin.requests[1].fields["Range"] == nil)
        #expect(try await stage.get(Stage.url, ["Range": "bytes=-1"]).source == .fresh)
        await stage.end()
    }

    @Test("H18: a part does not replace a stored whole")
    func partDoesNotReplaceAWhole() async throws {
        let stage = try await Stage(Self.origin())
        _ = try await stage.get()
        let part = try await stage.get(
            Stage.url,
            ["Range": "bytes=0-1"],
            policy: .reload
        )
        #expect(part.body == "ab")
        let whole = try await stage.get(policy: .cacheOnly)
        #expect(whole.body == Self.alphabet)
        await stage.end()
    }

    @Test("H18: a range miss may fill the whole after it")
    func rangeMissMayFillTheWhole() async throws {
        let stage = try await Stage(Self.origin()) { $0.caching.rangeMiss = .wholeBehind }
        let part = try await stage.get(Stage.url, ["Range": "bytes=3-5"])
        #expect(part.status == 206)
        #expect(part.body == "def")
        #expect(stage.origin.count == 2)
        #expect(stage.origin.requests[1].fields["Range"] == nil)
        let other = try await stage.get(Stage.url, ["Range": "bytes=20-21"])
        #expect(other.body == "uv")
        #expect(other.source == .fresh)
        #expect(try await stage.get().source == .fresh)
        #expect(stage.origin.count == 2)
        await stage.end()
    }

    @Test("H18: a stale stored whole is confirmed, then answers the range")
    func staleWholeIsConfirmedForARange() async throws {
        let stage = try await Stage(Self.origin())
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        let answer = try await stage.get(Stage.url, ["Range": "bytes=0-2"])
        #expect(answer.status == 206)
        #expect(answer.body == "abc")
        #expect(answer.source == .revalidated)
        await stage.end()
    }
}
