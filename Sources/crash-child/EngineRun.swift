import CacheEngine
import CacheTestSupport
import Platform
import Synchronization

/// Drives a complete cache whose origin answers each request with a new version.
///
/// The child prints these lines:
///
///     I key version    the origin is about to send a version
///     V key version    a caller has read that version to its end
///     X key            no version sent so far may be used without validation
///     T tag            the same for every key with the tag
enum EngineRun {
    private static let rounds = 1_000_000
    private static let sizes = [10, 500, 4_000, 20_000]

    static func play(
        _ directory: String,
        _ capacityBytes: Int,
        seed: UInt64,
        firstVersion: Int
    ) async throws {
        let versions = Mutex(firstVersion)
        let random = Mutex(SeededRandom(seed: seed))
        let origin = ScriptedOrigin { request, _ in
            guard let key = request.url.split(separator: "/").last.flatMap({ Int($0) }) else {
                return .whole(status: 404)
            }
            guard request.method != .post else { return .whole(body: "done") }
            let version = versions.withLock { next in
                next += 1
                return next
            }
            say("I \(key) \(version)")
            let size = random.withLock { sizes[Int($0.next() % UInt64(sizes.count))] }
            let isUnstored = request.fields["X-Unstored"] != nil
            return .whole(
                fields: [
                    "Cache-Control": isUnstored ? "no-store" : "max-age=1000000",
                    "Cache-Tag": CrashPlan.tag(of: key), "ETag": "\"\(version)\"",
                ],
                body: CrashPlan.text(key, version: version, bytes: size)
            )
        }
        let cache = try await HTTPCache(
            configuration: CrashPlan.cacheConfiguration(directory, capacityBytes),
            origin: origin
        )
        say("O")
        // The number of rounds is bounded, so that the child ends even if its parent does not kill
        // it.
        for _ in 0..<rounds {
            let (key, dice) = random.withLock { random in
                (Int(random.next() % UInt64(CrashPlan.keys)), random.next() % 100)
            }
            try await act(key, dice, on: cache)
        }
    }

    private static func act(_ key: Int, _ dice: UInt64, on cache: HTTPCache) async throws {
        var request = CacheRequest(url: CrashPlan.url(key))
        switch dice {
        case 0..<45: try await read(key, request, nil, from: cache)
        case 45..<65:
            try await read(key, request, .reload, from: cache)
        case 65..<72:
            request.fields["Cache-Control"] = "no-cache"
            request.fields["X-Unstored"] = "1"
            try await read(key, request, nil, from: cache)
            say("X \(key)")
        case 72..<80:
            request.method = .post
            _ = try await cache.respond(to: request).body.collect()
            say("X \(key)")
        case 80..<87:
            _ = try await cache.markStale(request)
            say("X \(key)")
        case 87..<90:
            let tag = CrashPlan.tag(of: key)
            try await cache.markStale(tagged: tag)
            say("T \(tag)")
        case 90..<95:
            _ = try await cache.remove(request)
            say("X \(key)")
        case 95..<97:
            let tag = CrashPlan.tag(of: key)
            try await cache.purge(tag: tag)
            say("T \(tag)")
        default: try await cache.flush()
        }
    }

    private static func read(
        _ key: Int,
        _ request: CacheRequest,
        _ policy: CachePolicy?,
        from cache: HTTPCache
    ) async throws {
        let body = try await cache.respond(to: request, policy: policy).body.collect()
        guard let version = CrashPlan.version(in: body.text, of: key) else { exit(5) }
        say("V \(key) \(version)")
    }
}
