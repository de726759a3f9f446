// The code of the article on URLSession, compiled; `DocumentTests` compares the two.

import CacheEngine
import CacheEngineFoundation
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

func exactSession() async throws -> URLSession {
    let cache = try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin())
    let configuration = URLSessionConfiguration.default
    configuration.load(through: cache)  // the one added line
    let session = URLSession(configuration: configuration)
    return session
}

func dropInSession() async throws -> URLSession {
    let configuration = URLSessionConfiguration.default
    configuration.urlCache = try await EngineURLCache.open(.ephemeral())  // the one changed line
    let session = URLSession(configuration: configuration)
    return session
}

enum SessionModes {
    /// A value from a JSON document.
    struct Forecast: Decodable, Equatable {
        var degrees: Int
    }

    static func forecast(_ cache: HTTPCache, _ url: URL) async throws -> Forecast {
        let request = URLRequest(url: url, cachePolicy: .returnCacheDataElseLoad)
        let (data, response) = try await cache.data(for: request)
        print(response.statusCode, data.count)
        return try await cache.decode(Forecast.self, from: request)
    }
}
