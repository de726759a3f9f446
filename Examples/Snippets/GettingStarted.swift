// The code of the documentation's articles, compiled; `DocumentTests` compares the two.

import CacheEngine

enum GettingStarted {
    static func first(origin: any Origin) async throws {
        let cache = try await HTTPCache(
            configuration: HTTPCache.Configuration(memory: .megabytes(256), mode: .shared),
            origin: origin
        )
        let response = try await cache.respond(to: CacheRequest(url: "https://example.com/"))
        let body = try await response.body.collect()
        print(response.status, body.count, response.info.source)
    }

    static func withDisk(origin: any Origin) async throws {
        var configuration = HTTPCache.Configuration(
            memory: .megabytes(256),
            backing: .disk(path: "/var/cache/app", capacity: .gigabytes(20)),
            mode: .shared
        )
        configuration.caching.staleWhileRevalidate = .seconds(30)
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

    static func conditions(cache: HTTPCache) async throws {
        var request = CacheRequest(url: "https://example.com/report?week=7")
        request.fields["Accept-Language"] = "de"
        request.options.timeout = .seconds(5)
        let response = try await cache.respond(to: request)
        print(response.fields["Content-Type"] ?? "", response.info.age ?? .zero)
    }

    static func failures(cache: HTTPCache, request: CacheRequest) async {
        do {
            let response = try await cache.respond(to: request)
            print(try await response.body.collect(upTo: .megabytes(1)).text)
        } catch let error as CacheError where error.code == .originTimedOut {
            print("too slow")
        } catch {
            print("no response:", error)
        }
    }
}
