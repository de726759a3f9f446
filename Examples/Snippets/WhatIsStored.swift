import CacheEngine

enum Storing {
    static func why(cache: HTTPCache, request: CacheRequest) async throws {
        let response = try await cache.respond(to: request)
        if let refusal = response.info.refusal { print("not stored:", refusal) }
    }

    static func hook() -> HTTPCache.Configuration {
        var configuration = HTTPCache.Configuration()
        configuration.hooks.willStore = { proposal in
            var proposal = proposal
            if proposal.request.url.hasPrefix("https://") { proposal.place = .memoryOnly }
            proposal.tags.append("site")
            return proposal
        }
        return configuration
    }

    static func byHand(cache: HTTPCache, request: CacheRequest) async throws {
        var options = HTTPCache.ManualStoreOptions()
        options.tags = ["user:42"]
        options.lifetime = .seconds(3_600)
        let answer = CacheResponse(status: 200, body: BodyStream(ByteChunk("hello")))
        try await cache.store(answer, for: request, options: options)
        try await cache.purge(tag: "user:42")
    }

    static func lifetimes() -> HTTPCache.Configuration {
        var configuration = HTTPCache.Configuration()
        configuration.caching.heuristic = nil
        configuration.caching.maximumLifetime = .seconds(86_400)
        configuration.caching.statusLifetimes = [404: .seconds(10), 410: .seconds(3_600)]
        return configuration
    }

    static func cookies() -> HTTPCache.Configuration {
        var configuration = HTTPCache.Configuration()
        configuration.caching.cookies = .strip
        return configuration
    }

    static func keys() -> HTTPCache.Configuration {
        var configuration = HTTPCache.Configuration()
        configuration.hooks.key = { request in
            let parts = request.url.split(separator: "?", maxSplits: 1)
            guard parts.count == 2, parts[1].contains("signature=") else { return nil }
            let kept = parts[1].split(separator: "&").filter { !$0.hasPrefix("signature=") }
            return "\(parts[0])?\(kept.joined(separator: "&"))"
        }
        return configuration
    }

    static func oneUsers(name: String) -> CacheRequest {
        var request = CacheRequest(url: "https://example.com/inbox")
        request.options.partition = name
        return request
    }
}
