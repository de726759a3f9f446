/// Fetches responses before they are requested.
struct Prefetch {
    let services: Services

    /// Fetches the responses that are not stored or not fresh, at most `concurrency` at a time.
    ///
    /// - Returns: The number of requests that the store can answer now.
    func load(_ requests: [CacheRequest], concurrency: Int) async -> Int {
        await withTaskGroup(of: Bool.self) { group in
            var waiting = requests.makeIterator()
            var loaded = 0
            func startNext() {
                guard let request = waiting.next() else { return }
                group.addTask { await isLoaded(request) }
            }
            for _ in 0..<min(max(1, concurrency), requests.count) { startNext() }
            while let isLoaded = await group.next() {
                if isLoaded { loaded += 1 }
                startNext()
            }
            return loaded
        }
    }

    private func isLoaded(_ request: CacheRequest) async -> Bool {
        if let response = FastHit(services).response(to: request, nil) {
            return response.info.isStored
        }
        do {
            let response = try await RequestRunner(services, request, nil).response()
            for try await _ in response.body {}
            guard response.info.isStored else { return false }
            // The body, the hook `willStore` or a purge may have kept it from being stored.
            return try await ManualStore(services: services).storedResponse(for: request) != nil
        } catch { return false }
    }
}
