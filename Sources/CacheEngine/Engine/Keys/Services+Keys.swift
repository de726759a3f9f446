import HTTPCaching

/// The keys of requests.
extension Services {
    /// Lends the key of the request to `body`; returns `nil` if the URL is not absolute.
    @inline(__always)
    func withKey<Result>(
        of request: CacheRequest,
        _ body: (UnsafeRawBufferPointer, TargetURL.Scheme) throws -> Result
    ) rethrows -> Result? {
        if request.options.isUsual, !hasKeyHook {
            return try KeyWriter.withKey(url: request.url, body)
        }
        return try KeyWriter.withKey(
            url: request.url,
            name: request.options.key ?? configuration.hooks.key?(request),
            partition: request.options.partition,
            body
        )
    }

    /// The key of the request, and whether responses of its scheme are stored.
    func key(of request: CacheRequest) throws -> (key: RequestKey, isStorable: Bool) {
        let read = withKey(of: request) { bytes, scheme in
            (RequestKey(bytes: [UInt8](bytes), hash: tiers.hasher.hash(bytes)), scheme)
        }
        guard let (key, scheme) = read else {
            let url = PlainText.excerpt(request.url)
            let isEncoded = request.url.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
            throw CacheError(
                .requestInvalid,
                detail: isEncoded
                    ? "The URL is not absolute: `\(url)`; give scheme, host and path"
                    : "The URL contains a space or a control character; escape it: `\(url)`"
            )
        }
        return (key, scheme != .other || isAdditionalScheme(request.url))
    }

    private func isAdditionalScheme(_ url: String) -> Bool {
        let schemes = configuration.caching.additionalSchemes
        guard !schemes.isEmpty, let colon = url.firstIndex(of: ":") else { return false }
        return schemes.contains(url[..<colon].lowercased())
    }
}
