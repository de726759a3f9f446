import CacheTestSupport
import Testing

@testable import CacheEngine

/// Removal and capacity (U8 to U10).
extension PersistenceTests {
    @Test("U8: after removeAll nothing is readable, at once and after a restart")
    func removeAllIsForGood() async throws {
        let body = ManualBody()
        let origin = ScriptedOrigin { request, _ in
            let fields: HeaderFields = ["Cache-Control": "max-age=60"]
            guard request.url.hasSuffix("slow") else { return .whole(fields: fields, body: "x") }
            return OriginResponse(status: 200, fields: fields, body: body.stream())
        }
        let stage = try await open(origin)
        for number in 0..<50 { _ = try await stage.get(Self.url(number)) }
        let slow = try await stage.cache.respond(to: CacheRequest(url: "http://example.com/slow"))
        body.feed("half")
        #expect(try await stage.cache.removeAll().entries == 50)
        body.finish()
        _ = try await slow.body.collect()
        await stage.cache.waitUntilIdle()
        for number in 0..<50 { #expect(try await stage.holds(Self.url(number)) == false) }
        #expect(try await stage.holds("http://example.com/slow") == false)
        // An acknowledged removal is durable, even if the process is killed.
        let left = try folder.copy()
        await stage.end()
        for folder in [left, folder] {
            let stage = try await open(in: folder)
            for number in 0..<50 { #expect(try await stage.holds(Self.url(number)) == false) }
            #expect(try await stage.holds("http://example.com/slow") == false)
            await stage.end()
        }
    }

    @Test("U8: a tag purge survives the end of the process, whatever end that is")
    func purgeSurvives() async throws {
        let origin = ScriptedOrigin { request, _ in
            let tag = request.url.hasSuffix("7") ? "seven" : "other"
            return .whole(fields: ["Cache-Control": "max-age=60", "Cache-Tag": tag], body: "x")
        }
        let stage = try await open(origin)
        for number in 0..<30 { _ = try await stage.get(Self.url(number)) }
        try await stage.cache.flush()
        #expect(try await stage.cache.purge(tag: "seven").entries == 3)
        let left = try folder.copy()
        await stage.end()
        for folder in [left, folder] {
            let stage = try await open(in: folder)
            for number in 0..<30 {
                #expect(try await stage.holds(Self.url(number)) == (number % 10 != 7))
            }
            await stage.end()
        }
    }

    @Test("U9, U10: bytes on disk never exceed the capacity, metadata included")
    func diskNeverExceedsItsCapacity() async throws {
        var random = SeededRandom(seed: 11)
        let origin = ScriptedOrigin { request, number in
            var random = SeededRandom(seed: UInt64(number))
            let letters = (0..<20_000).map { _ in
                Character(Unicode.Scalar(UInt8.random(in: 33..<127, using: &random)))
            }
            return .whole(fields: ["Cache-Control": "max-age=60"], body: String(letters))
        }
        let stage = try await open(origin, megabytes: 4) { $0.memory = .megabytes(1) }
        let capacity = 4 << 20
        for round in 0..<400 {
            _ = try await stage.get(Self.url(Int.random(in: 0..<10_000, using: &random)))
            guard round % 20 == 19 else { continue }
            try await stage.cache.flush()
            #expect(folder.occupiedBytes <= capacity)
            let usage = await stage.cache.statistics.disk
            #expect(usage.bytes <= usage.capacityBytes)
            #expect(usage.capacityBytes <= capacity)
            #expect(usage.entries > 0)
        }
        await stage.end()
        #expect(folder.occupiedBytes <= capacity)
    }

    @Test("U10: a smaller capacity is reached before the call returns")
    func smallerDiskCapacityIsReachedAtOnce() async throws {
        let origin = ScriptedOrigin { _, number in
            var random = SeededRandom(seed: UInt64(number))
            let letters = (0..<40_000).map { _ in
                Character(Unicode.Scalar(UInt8.random(in: 33..<127, using: &random)))
            }
            return .whole(fields: ["Cache-Control": "max-age=60"], body: String(letters))
        }
        let stage = try await open(origin, megabytes: 16)
        for number in 0..<250 { _ = try await stage.get(Self.url(number)) }
        try await stage.cache.flush()
        let before = await stage.cache.statistics.disk
        try await stage.cache.setDiskCapacity(.megabytes(8))
        let after = await stage.cache.statistics.disk
        #expect(before.bytes > 8 << 20)
        #expect(after.bytes <= 8 << 20)
        #expect(after.entries > 0)
        await stage.end()
    }

    @Test("H13, U10: the largest entry is a share of the present capacity")
    func largestEntryFollowsTheCapacity() async throws {
        let body = String(repeating: "x", count: 2_000_000)
        let origin = ScriptedOrigin(fields: ["Cache-Control": "max-age=60"], body: body)
        let stage = try await open(origin, megabytes: 16) { $0.memory = .megabytes(1) }
        for (megabytes, isKept) in [(16, false), (64, true), (16, false)] {
            try await stage.cache.setDiskCapacity(.megabytes(megabytes))
            let url = "http://example.com/\(megabytes)/\(stage.origin.count)"
            #expect(try await stage.get(url).body == body)
            #expect(try await stage.holds(url) == isKept, "\(megabytes)")
        }
        await stage.end()
    }

    @Test("after the shutdown, the entries that the directory holds are not called absent")
    func closedCacheRefusesMarksAndCapacities() async throws {
        let stage = try await open()
        _ = try await stage.get()
        await stage.end()
        await stage.cache.relieveMemoryPressure()
        let marking = await #expect(throws: CacheError.self) {
            try await stage.cache.markStale(CacheRequest(url: Stage.url))
        }
        #expect(marking?.code == .shutDown)
        let markingOne = await #expect(throws: CacheError.self) {
            try await stage.cache.markVariantStale(CacheRequest(url: Stage.url))
        }
        #expect(markingOne?.code == .shutDown)
        let resizing = await #expect(throws: CacheError.self) {
            try await stage.cache.setDiskCapacity(.megabytes(32))
        }
        #expect(resizing?.code == .shutDown)
        let look = await #expect(throws: CacheError.self) {
            try await stage.cache.storedResponse(for: CacheRequest(url: Stage.url))
        }
        #expect(look?.code == .shutDown)
    }
}
