// The code that the documents show, compiled. `DocumentTests` compares the two.

import CacheEngine
import CacheTestSupport

enum GettingStarted {
    static func first(origin: any Origin) async throws {
        let cache = try await HTTPCache(
            configuration: Configuration(memory: .megabytes(256)),
            origin: origin
        )
        let response = try await cache.respond(to: CacheRequest(url: "https://example.com/"))
        let body = try await response.body.collect()
        print(response.status, body.count, response.info.source)
    }

    static func withDisk(origin: any Origin) async throws {
        var configuration = Configuration(
            memory: .megabytes(256),
            disk: .directory("/var/cache/app", .gigabytes(20)),
            mode: .shared
        )
        configuration.storing.staleWhileRevalidateSeconds = 30
        let cache = try await HTTPCache(configuration: configuration, origin: origin)
        await cache.shutDown()
    }

    static func service(cache: HTTPCache) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await cache.run() }
        }
    }

    static func streaming(cache: HTTPCache, request: CacheRequest) async throws {
        let response = try await cache.respond(to: request)
        for try await chunk in response.body {
            chunk.withUnsafeBytes { bytes in print(bytes.count) }
        }
    }
}

enum Storing {
    static func why(cache: HTTPCache, request: CacheRequest) async throws {
        let response = try await cache.respond(to: request)
        if let refusal = response.info.refusal { print("not stored:", refusal) }
    }

    static func hook() -> Configuration {
        var configuration = Configuration()
        configuration.hooks.willStore = { proposal in
            var proposal = proposal
            if proposal.request.url.hasPrefix("https://") { proposal.place = .memoryOnly }
            proposal.tags.append("site")
            return proposal
        }
        return configuration
    }

    static func byHand(cache: HTTPCache, request: CacheRequest) async throws {
        var options = HTTPCache.StoreOptions()
        options.tags = ["user:42"]
        options.lifetimeSeconds = 3_600
        let answer = CacheResponse(status: 200, body: BodyStream(ByteChunk("hello")))
        try await cache.store(answer, for: request, options: options)
        try await cache.purge(tag: "user:42")
    }
}

enum Stale {
    static func offline(cache: HTTPCache, request: CacheRequest) async throws {
        let policy = CachePolicy.useProtocolCachePolicy.with { $0.fallback = .always() }
        let response = try await cache.respond(to: request, policy: policy)
        if response.info.isStale { print("from", response.info.storedAtSeconds ?? 0) }
    }

    static func behind(cache: HTTPCache, request: CacheRequest) async throws {
        let response = try await cache.respond(to: request, policy: .cachedThenRefresh)
        print(response.info.source)
    }

    static func onlyCached(cache: HTTPCache, request: CacheRequest) async throws {
        do {
            _ = try await cache.respond(to: request, policy: .onlyCached)
        } catch let error as CacheError where error.code == .notCached {
            print("nothing stored")
        }
    }

    static func bits(cache: HTTPCache, request: CacheRequest) async throws {
        let bits: DownloadCachePolicy = [.askServerIfModified, .fallbackToCacheIfLoadFails]
        _ = try await cache.respond(to: request, policy: CachePolicy(bits))
    }
}

enum Collapse {
    static func limits() -> Configuration {
        var configuration = Configuration()
        configuration.flights.waitSecondsMax = 5
        configuration.flights.attemptsMax = 2
        configuration.flights.abandoned = .cancel
        return configuration
    }

    static func alone() -> CacheRequest {
        var request = CacheRequest(url: "https://example.com/")
        request.options.collapsing = .alone
        return request
    }
}

enum Testing {
    static func counted() async throws {
        let clock = TestClock()
        let origin = ScriptedOrigin(fields: ["Cache-Control": "max-age=60"], body: "hello")
        var configuration = Configuration()
        configuration.clock = clock
        let cache = try await HTTPCache(configuration: configuration, origin: origin)
        let request = CacheRequest(url: "http://example.com/")

        _ = try await cache.respond(to: request).body.collect()
        clock.advance(seconds: 59)
        _ = try await cache.respond(to: request)
        assert(origin.count == 1)
        await cache.shutDown()
    }
}

/// A store that keeps everything in a dictionary.
actor DictionaryStore: CacheStore {
    private var entries: [StoreKey: StoredEntry] = [:]

    func entry(for key: StoreKey) async throws -> StoredEntry? { entries[key] }

    func store(_ entry: StoredEntry) async throws -> StoreOutcome {
        entries[entry.key] = entry
        return .stored
    }

    func remove(_ key: StoreKey) async throws -> Bool {
        entries.removeValue(forKey: key) != nil
    }

    func removeAll(in scope: RemovalScope) async throws -> RemovalCount {
        let doomed = entries.values.filter { entry in
            switch scope {
            case .everything: true
            case .tag(let tag): entry.tags.contains(tag)
            case .storageClass(let storageClass): entry.storageClass == storageClass
            case .storedAfter(let seconds): entry.createdSeconds >= seconds
            case .storedBefore(let seconds): entry.createdSeconds < seconds
            }
        }
        for entry in doomed { entries[entry.key] = nil }
        return RemovalCount(entries: doomed.count)
    }

    func usage() async -> StoreUsage { StoreUsage(entries: entries.count) }

    func flush() async throws {}
}

/// An origin that answers from a table.
struct TableOrigin: Origin {
    let pages: [String: String]

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        guard let page = pages[request.url] else { return OriginResponse(status: 404) }
        return OriginResponse(
            status: 200,
            fields: ["Cache-Control": "max-age=60", "Content-Type": "text/plain"],
            body: BodyStream(ByteChunk(page))
        )
    }
}
