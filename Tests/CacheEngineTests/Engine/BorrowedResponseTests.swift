import CacheTestSupport
import Platform
import Synchronization
import Testing

@testable import CacheEngine

/// The hit that is read where it is stored.
@Suite struct BorrowedResponseTests {
    /// A response's parts, copied, so that two responses can be compared.
    struct Copy: Equatable {
        let status: Int
        let fields: HeaderFields
        let body: [UInt8]
        let source: CacheInfo.Source
        let tier: CacheInfo.Tier?
        let ageSeconds: Int?
        let remainingSeconds: Int?
        let storedAtSeconds: Int64?
        let isStored: Bool

        init(status: Int, _ fields: HeaderFields, _ body: [UInt8], _ info: CacheInfo) {
            self.status = status
            self.fields = fields
            self.body = body
            source = info.source
            tier = info.tier
            ageSeconds = info.ageSeconds
            remainingSeconds = info.remainingSeconds
            storedAtSeconds = info.storedAtSeconds
            isStored = info.isStored
        }

        /// The parts as the borrowed response lends them.
        init(lent response: borrowing BorrowedResponse) {
            var fields = HeaderFields()
            response.forEachLine { name, value in
                fields.append(
                    String(decoding: name, as: UTF8.self),
                    String(decoding: value, as: UTF8.self)
                )
            }
            let body = response.withBody { [UInt8]($0) }
            self.init(status: response.status, fields, body, response.info)
        }

        init(owned response: CacheResponse) async throws {
            let body = try await response.body.collect().array
            self.init(status: response.status, response.fields, body, response.info)
        }
    }

    /// What the threads of a test tell each other.
    private final class Signals: Sendable {
        let isInside = Atomic(false)
        let isRemoved = Atomic(false)
        let isDone = Atomic(false)
    }

    static let largeBodyCount = FastHit.lentBodyBytesMax + 1

    /// An origin whose URLs name the kinds of responses that a cache holds.
    static let origin = ScriptedOrigin { request, _ in
        let path = request.url
        var fields: HeaderFields = [
            "Cache-Control": "max-age=60, stale-while-revalidate=60", "ETag": "\"1\"",
            "Content-Type": "text/plain",
        ]
        if path.hasSuffix("/varied") { fields["Vary"] = "Accept-Language" }
        if path.hasSuffix("/missing") { return .whole(status: 404, fields: fields, body: "none") }
        if path.hasSuffix("/moved") {
            fields["Location"] = "/plain"
            return .whole(status: 301, fields: fields)
        }
        if path.hasSuffix("/empty") { return .whole(fields: fields) }
        let count = path.hasSuffix("/large") ? largeBodyCount : 2_000
        return .whole(fields: fields, body: String(repeating: "0123456789", count: count / 10 + 1))
    }

    static let paths = ["plain", "varied", "missing", "moved", "empty", "large", "absent"]

    static let fields: [HeaderFields] = [
        [:], ["Accept-Language": "en"], ["If-None-Match": "\"1\""], ["If-None-Match": "\"2\""],
        ["Range": "bytes=5-9"], ["Range": "bytes=5000000-"], ["Cache-Control": "no-cache"],
        ["Cache-Control": "max-stale=100"], ["Cache-Control": "only-if-cached"],
        ["Cookie": "a=b"], ["Authorization": "Basic eDp5"], ["If-None-Match": "*"],
        ["If-None-Match": "\"0\", W/\"1\"", "Cookie": "a=b"],
        ["If-None-Match": "\"2\"", "If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"],
        ["If-None-Match": "\"1\"", "Range": "bytes=5-9"],
        ["If-None-Match": "\"1\"", "If-Match": "\"1\""],
    ]

    static func requests() -> [CacheRequest] {
        paths.flatMap { path in
            fields.flatMap { fields in
                [HTTPMethod.get, .head].map {
                    CacheRequest(method: $0, url: "http://example.com/\(path)", fields: fields)
                }
            }
        }
    }

    /// Compares the two forms for every request at one moment; returns how many were answered.
    static func compare(_ stage: Stage, _ policy: CachePolicy? = nil) async throws -> Int {
        var answered = 0
        for request in requests() {
            let owned = stage.cache.immediateResponse(to: request, policy: policy)
            let lent = stage.cache.withImmediateResponse(to: request, policy: policy) {
                (Copy(lent: $0), $0.bodyCount, $0.response)
            }
            guard let owned else {
                #expect(lent == nil)
                continue
            }
            let (copy, bodyCount, kept) = try #require(lent)
            let expected = try await Copy(owned: owned)
            #expect(
                copy == expected,
                "\(request.method.name) \(request.url) \(request.fields.pairs)"
            )
            #expect(bodyCount == expected.body.count)
            #expect(try await Copy(owned: kept) == expected)
            answered += 1
        }
        return answered
    }

    @Test("the borrowed response equals the owned one: fresh, stale, and under every policy")
    func borrowedEqualsOwned() async throws {
        let stage = try await Stage(Self.origin)
        for path in Self.paths where path != "absent" {
            _ = try await stage.get("http://example.com/\(path)")
            _ = try await stage.get("http://example.com/\(path)", ["Accept-Language": "en"])
        }
        #expect(try await Self.compare(stage) > 50)
        stage.clock.advance(seconds: 61)
        #expect(try await Self.compare(stage) > 5)
        for policy in [CachePolicy.cacheOnly, .cacheElseLoad, .revalidate, .bypass] {
            _ = try await Self.compare(stage, policy)
        }
        await stage.end()
    }

    /// Threads that hit one key would write to the count of an entry that is held.
    @Test("a hit is lent, also a 304 and one of a request with a cookie")
    func conditionalHitsAreLent() async throws {
        let stage = try await Stage(Self.origin)
        for path in ["plain", "large"] {
            let url = "http://example.com/\(path)"
            _ = try await stage.get(url)
            for (name, value, status) in [
                ("Cookie", "a=b", 200), ("Authorization", "Basic eDp5", 200),
                ("If-None-Match", "\"1\"", 304), ("If-None-Match", "\"2\"", 200),
            ] where status == 304 || path == "plain" {
                let request = CacheRequest(url: url, fields: HeaderFields([(name, value)]))
                var found: Int?
                let answer = stage.cache.immediateAnswer(
                    to: request,
                    bodyBytesMax: FastHit.lentBodyBytesMax
                ) { found = $0.status }
                guard case .read = answer else {
                    Issue.record("\(path), \(name): the entry was held")
                    continue
                }
                #expect(found == status)
            }
        }
        #expect(await stage.cache.statistics.answers[.fresh] == 5)
        await stage.end()
    }

    @Test func severalRangesAreJoined() async throws {
        let stage = try await Stage(Self.origin)
        _ = try await stage.get("http://example.com/plain")
        let request = CacheRequest(
            url: "http://example.com/plain",
            fields: ["Range": "bytes=0-4,10-14"]
        )
        let body = stage.cache.withImmediateResponse(to: request) { response in
            #expect(response.status == 206)
            let text = response.withBody { String(decoding: $0, as: UTF8.self) }
            #expect(text.utf8.count == response.bodyCount)
            return text
        }
        #expect(body?.contains("\r\n\r\n01234\r\n") == true)
        await stage.end()
    }

    @Test("an error of the closure reaches the caller, and the entry can still be removed")
    func errorOfTheClosureReachesTheCaller() async throws {
        struct Failure: Error {}
        let stage = try await Stage()
        _ = try await stage.get()
        let request = CacheRequest(url: Stage.url)
        #expect(throws: Failure.self) {
            try stage.cache.withImmediateResponse(to: request) { _ throws(Failure) in
                throw Failure()
            }
        }
        // Waits for readers: a reader that had not left would never let this return.
        #expect(try await stage.cache.removeAll().entries == 1)
        #expect(stage.cache.withImmediateResponse(to: request) { $0.status } == nil)
        await stage.end()
    }

    @Test("an entry that is removed while it is read stays readable until the closure returns")
    func entryRemovedMeanwhileStaysReadable() async throws {
        for path in ["plain", "large"] {
            let stage = try await Stage(Self.origin)
            let request = CacheRequest(url: "http://example.com/\(path)")
            let answer = try await stage.get(request.url)
            let signals = Signals()
            let cache = stage.cache
            let memory = cache.services.tiers.memory
            let read = await PlainThread.run {
                // Both on threads of their own: the pool's may all wait for this very reader.
                let remover = PlainThread.begin {
                    while !signals.isInside.load(ordering: .acquiring) { sched_yield() }
                    memory.removeAtOnce(in: .everything)
                    signals.isRemoved.store(true, ordering: .releasing)
                }
                defer { remover.join() }
                return cache.withImmediateResponse(to: request) { response in
                    signals.isInside.store(true, ordering: .releasing)
                    // Until the removal has unlinked the entry, and a while longer.
                    while cache.immediateResponse(to: request) != nil { sched_yield() }
                    for _ in 0..<200 { sched_yield() }
                    let wasReleased = signals.isRemoved.load(ordering: .acquiring)
                    let isWhole = response.withBody {
                        String(decoding: $0, as: UTF8.self) == answer.body
                    }
                    return (isWhole, wasReleased)
                }
            }
            let (isWhole, wasReleased) = try #require(read)
            #expect(isWhole)
            // A large body is retained and not lent inside the gate: nobody waits for its reader.
            if path == "plain" { #expect(!wasReleased) }
            await stage.end()
        }
    }

    @Test("readers of one key see whole responses while it is replaced and removed")
    func readersSeeWholeResponsesWhileOthersWrite() async throws {
        let stage = try await Stage()
        let cache = stage.cache
        let request = CacheRequest(url: Stage.url)
        let signals = Signals()
        let torn = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    await PlainThread.run {
                        var torn = 0
                        while !signals.isDone.load(ordering: .acquiring) {
                            let isWhole = cache.withImmediateResponse(to: request) { response in
                                response.withBody { bytes in bytes.allSatisfy { $0 == bytes[0] } }
                            }
                            if isWhole == false { torn += 1 }
                        }
                        return torn
                    }
                }
            }
            for round in 0..<500 {
                let letter = String(UnicodeScalar(UInt8(97 + round % 26)))
                let response = CacheResponse(
                    status: 200,
                    fields: ["Cache-Control": "max-age=60"],
                    body: BodyStream(ByteChunk(String(repeating: letter, count: 500 + round)))
                )
                _ = try await cache.store(response, for: request)
                if round % 8 == 0 { _ = try await cache.remove(request) }
                if round % 32 == 0 { _ = try await cache.removeAll() }
            }
            signals.isDone.store(true, ordering: .releasing)
            return try await group.reduce(0, +)
        }
        #expect(torn == 0)
        await stage.end()
    }
}
