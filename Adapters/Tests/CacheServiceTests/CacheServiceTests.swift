import CacheEngine
import CacheService
import CacheTestSupport
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing

/// A cache ends with its service, and writes its entries first.
@Suite(.timeLimit(.minutes(1))) struct CacheServiceTests {
    private let request = CacheRequest(url: "http://example.test/a")

    @Test func gracefulShutdownShutsTheCacheDown() async throws {
        let cache = try await HTTPCache(origin: ScriptedOrigin())
        try await testGracefulShutdown { trigger in
            async let service: Void = CacheService(cache).run()
            trigger.triggerGracefulShutdown()
            try await service
        }
        await expectShutDown(cache)
    }

    @Test func cancellationShutsTheCacheDown() async throws {
        let cache = try await HTTPCache(origin: ScriptedOrigin())
        let service = Task { try await CacheService(cache).run() }
        service.cancel()
        try await service.value
        await expectShutDown(cache)
    }

    @Test func theCacheAnswersUntilTheShutdown() async throws {
        let cache = try await HTTPCache(origin: ScriptedOrigin())
        try await testGracefulShutdown { trigger in
            async let service: Void = CacheService(cache).run()
            #expect(try await cache.respond(to: request).info.source == .origin)
            #expect(try await cache.respond(to: request).info.source == .fresh)
            trigger.triggerGracefulShutdown()
            try await service
        }
    }

    @Test func entriesAreOnDiskAfterTheShutdown() async throws {
        let folder = TemporaryFolder()
        let configuration = HTTPCache.Configuration(
            backing: .disk(path: folder.path, capacity: .megabytes(64))
        )
        let first = try await HTTPCache(configuration: configuration, origin: ScriptedOrigin())
        try await testGracefulShutdown { trigger in
            async let service: Void = CacheService(first).run()
            _ = try await first.respond(to: request).body.collect()
            trigger.triggerGracefulShutdown()
            try await service
        }
        // The directory is free, and the entry is in it.
        let origin = ScriptedOrigin()
        let second = try await HTTPCache(configuration: configuration, origin: origin)
        #expect(try await second.respond(to: request).info.source == .fresh)
        #expect(origin.count == 0)
        await second.shutDown()
    }

    private func expectShutDown(_ cache: HTTPCache) async {
        do {
            _ = try await cache.respond(to: request)
            Issue.record("The cache answered after its service had ended")
        } catch {
            #expect((error as? CacheError)?.code == .shutDown)
        }
    }
}
