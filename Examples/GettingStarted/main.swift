// Loads a URL through a cache, and tells where the response came from.
//
//     swift run getting-started https://example.com/

import CacheEngine
import CurlOrigin

let url = CommandLine.arguments.dropFirst().first ?? "https://example.com/"
let cache = try await HTTPCache(
    configuration: HTTPCache.Configuration(memory: .megabytes(256), mode: .private),
    origin: CurlOrigin()
)
let response = try await cache.respond(to: CacheRequest(url: url))
let body = try await response.body.collect()
print(response.status, body.count, response.info.source)
await cache.shutDown()
