// Loads a URL three times with URLSession. One added line makes it cache.
//
//     swift run urlsession-program https://example.com/

import CacheEngine
import CacheEngineFoundation
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

guard CommandLine.arguments.count == 2, let url = URL(string: CommandLine.arguments[1]) else {
    print("usage: urlsession-program URL")
    exit(2)
}

let cache = try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin())
let configuration = URLSessionConfiguration.default
configuration.load(through: cache)  // the one added line
let session = URLSession(configuration: configuration)

for _ in 1...3 {
    let (data, response) = try await session.data(from: url)
    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
    print("\(status), \(data.count) bytes")
}
