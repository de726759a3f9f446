import CacheTestSupport
import HTTPCaching
import Testing

@testable import CacheEngine

/// Fields stored in an entry, and the lines appended to them.
@Suite struct ServedFieldsTests {
    static let stored = FieldSection([("Content-Type", "text/plain"), ("ETag", "\"1\"")])

    static func served(age: Int?, _ status: OwnLines.Status) -> HeaderFields {
        let lines = stored.withUnsafeBytes { ByteChunk(copying: $0) }
        return HeaderFields(ServedFields(lines, OwnLines(ageSeconds: age, status)))
    }

    /// Each possible ending after the stored lines, and the lines it reads as.
    static let endings: [(fields: HeaderFields, lines: [(String, String)])] = [
        (served(age: nil, .omitted), []),
        (served(age: 0, .omitted), [("Age", "0")]),
        (
            served(age: 7, .hit(StatusName("cache"), remainingSeconds: -3)),
            [("Age", "7"), ("Cache-Status", "cache; hit; ttl=-3")]
        ),
        (
            served(
                age: .max,
                .hit(StatusName("a-name-that-no-word-of-memory-holds"), remainingSeconds: .max)
            ),
            [
                // The largest age that is kept; RFC 9111 §1.2.2 requires at least 2147483648.
                ("Age", "4294967294"),
                (
                    "Cache-Status",
                    "a-name-that-no-word-of-memory-holds; hit; ttl=9223372036854775807"
                ),
            ]
        ),
        (
            served(age: nil, .other(StatusName("c"), CacheStatus(.forwarded(.stale)))),
            [("Cache-Status", "c; fwd=stale")]
        ),
    ]

    @Test func linesReadAsIfTheyHadBeenCopied() {
        for (fields, lines) in Self.endings {
            var copied = HeaderFields(Self.stored)
            for (name, value) in lines { copied.append(name, value) }
            #expect(fields == copied && fields.hashValue == copied.hashValue)
            #expect(fields.count == copied.count && !fields.isEmpty)
            #expect(fields.pairs.map(\.name) == copied.pairs.map(\.name))
            #expect(fields.pairs.map(\.value) == copied.pairs.map(\.value))
            #expect(fields["age"] == copied["age"])
            #expect(fields.values("CACHE-STATUS") == copied.values("CACHE-STATUS"))
            #expect(fields.contains("etag") && !fields.contains("Date"))
            #if ENGINE_CHECKS
                fields.section.checkInvariants()
            #endif
        }
    }

    @Test func changingACopyLeavesTheOthersAlone() {
        for (fields, lines) in Self.endings {
            var changed = fields
            changed["ETag"] = nil
            changed["Age"] = "1"
            changed.append("Date", "now")
            #expect(changed["ETag"] == nil && changed["Age"] == "1" && changed["Date"] == "now")
            #expect(fields["ETag"] == "\"1\"" && fields["Date"] == nil)
            #expect(fields.count == 2 + lines.count)
        }
    }
}
