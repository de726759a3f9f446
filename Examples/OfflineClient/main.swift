// A client that works without its origin: what it has seen once it shows again, and says so.
//
//   swift run offline-client https://example.com/ /tmp/offline-cache

import CacheEngine
import CurlOrigin

guard CommandLine.arguments.count == 3 else {
    print("usage: offline-client URL DIRECTORY")
    throw CacheError(.requestInvalid, detail: "Two arguments are needed")
}

var configuration = Configuration(
    memory: .megabytes(16),
    disk: .directory(CommandLine.arguments[2], .megabytes(64)),
    mode: .private
)
configuration.policy = .useProtocolCachePolicy.with { policy in
    policy.fallback = .always()
    policy.respectsOriginDirectives = false
}
let cache = try await HTTPCache(configuration: configuration, origin: CurlOrigin())
do {
    let response = try await cache.respond(to: CacheRequest(url: CommandLine.arguments[1]))
    let body = try await response.body.collect()
    print("\(response.info.source): \(body.text)")
} catch {
    print("not available: \(error)")
}
await cache.shutDown()
