import CacheEngine
import CacheTestSupport
import Testing

/// The basic paths through memory and disk together.
@Suite struct DiskStepsTests {
    let clock = TestClock()

    func cache(_ origin: ScriptedOrigin, _ folder: TemporaryFolder) async throws -> HTTPCache {
        var configuration = HTTPCache.Configuration(
            memory: .megabytes(16),
            backing: .disk(path: folder.path, capacity: .megabytes(64))
        )
        configuration.clock = clock
        return try await HTTPCache(configuration: configuration, origin: origin)
    }

    @Test func entriesAreThereAfterARestart() async throws {
        let folder = TemporaryFolder()
        let request = CacheRequest(url: "http://example.com/a")
        let first = try await cache(ScriptedOrigin(), folder)
        _ = try await first.respond(to: request).body.collect()
        await first.shutDown()

        let origin = ScriptedOrigin()
        let second = try await cache(origin, folder)
        let fromDisk = try await second.respond(to: request)
        #expect(try await fromDisk.body.collect().text == "hello")
        #expect(fromDisk.info.tier == .disk)
        let fromMemory = try await second.respond(to: request)
        #expect(fromMemory.info.tier == .memory)
        #expect(origin.count == 0)
        await second.shutDown()
    }

    @Test func hitOnDiskIsAnsweredAsTheLongerWayAnswersIt() async throws {
        let folder = TemporaryFolder()
        let origin = ScriptedOrigin(
            fields: ["Cache-Control": "max-age=60", "Cache-Tag": "green", "ETag": "\"1\""],
            body: "hello"
        )
        let cache = try await cache(origin, folder)
        // Nothing is promoted, so every hit is one on disk.
        await cache.setMemoryCapacity(.bytes(0))
        let request = CacheRequest(url: "http://example.com/a")
        _ = try await cache.respond(to: request).body.collect()
        clock.advance(seconds: 3)
        var considered = request
        // A directive that changes nothing for a fresh response.
        considered.fields["Cache-Control"] = "max-stale=1"
        let plain = try await cache.respond(to: request)
        let other = try await cache.respond(to: considered)
        #expect(plain.info.tier == .disk && other.info.tier == .disk)
        #expect(plain.info.source == .fresh && other.info.source == .fresh)
        #expect(plain.status == other.status && plain.fields == other.fields)
        #expect(plain.info.ageSeconds == 3 && other.info.ageSeconds == 3)
        #expect(plain.info.remainingSeconds == other.info.remainingSeconds)
        #expect(plain.info.storedAtSeconds == other.info.storedAtSeconds)
        #expect(plain.info.isStored == other.info.isStored)
        #expect(try await plain.body.collect().text == "hello")
        #expect(try await other.body.collect().text == "hello")
        #expect(origin.count == 1)

        try await cache.markStale(tagged: "green")
        #expect(try await cache.respond(to: request).info.source != .fresh)
        #expect(origin.count == 2)
        await cache.shutDown()
    }

    @Test func largeBodyGoesToAFileOfItsOwnAndComesBackInPieces() async throws {
        let folder = TemporaryFolder()
        let text = String(repeating: "0123456789abcdef", count: 160_000)
        let origin = ScriptedOrigin { _, _ in
            .whole(fields: ["Cache-Control": "max-age=60"], body: text)
        }
        let cache = try await cache(origin, folder)
        var request = CacheRequest(url: "http://example.com/large")
        let first = try await cache.respond(to: request)
        #expect(try await first.body.collect().text == text)
        await cache.waitUntilIdle()
        let second = try await cache.respond(to: request)
        #expect(second.info.tier == .disk)
        #expect(try await second.body.collect().text == text)
        request.fields["Range"] = "bytes=1000000-1000015"
        let part = try await cache.respond(to: request)
        #expect(part.status == 206)
        #expect(try await part.body.collect().text == "0123456789abcdef")
        #expect(origin.count == 1)
        await cache.shutDown()
    }

    @Test func removedEntryStaysRemovedAfterARestart() async throws {
        let folder = TemporaryFolder()
        let request = CacheRequest(url: "http://example.com/a")
        let first = try await cache(ScriptedOrigin(), folder)
        _ = try await first.respond(to: request).body.collect()
        #expect(try await first.remove(request))
        await first.shutDown()
        let second = try await cache(ScriptedOrigin(), folder)
        #expect(try await second.storedResponse(for: request) == nil)
        await second.shutDown()
    }

    @Test func secondCacheOnADirectoryIsRefused() async throws {
        let folder = TemporaryFolder()
        let first = try await cache(ScriptedOrigin(), folder)
        await #expect { _ = try await cache(ScriptedOrigin(), folder) } throws: { error in
            (error as? CacheError)?.code == .directoryInUse
        }
        await first.shutDown()
    }
}
