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
            throw CacheError(
                .requestInvalid,
                detail: "The URL is not absolute: `\(PlainText.excerpt(request.url))`; "
                    + "give scheme, host and path"
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
