public import CacheEngine

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

extension URLSessionConfiguration {
    /// Loads the http and https tasks of all sessions made from this configuration through `cache`.
    ///
    /// `urlCache` becomes an `EngineURLCache` over the same cache, for direct access. It must stay
    /// in place: sessions find the cache through it. Several configurations may use one cache or
    /// different ones.
    ///
    /// `urlCache` looks up and stores with the `httpAdditionalHeaders` that are set when this method
    /// is called; it does not see later changes. The loads of a session see all of them.
    ///
    /// The delegate of a session is asked about storing. On Apple's platforms, where URLSession
    /// itself follows the request policies and asks its delegate, only `urlCache` is set, and
    /// URLSession decides whether it uses what is stored there.
    public func load(through cache: HTTPCache) {
        #if canImport(FoundationNetworking)
            load(through: cache, storing: .askingDelegate)
        #else
            urlCache = EngineURLCache(cache, additionalFields: additionalFields)
        #endif
    }

    #if canImport(FoundationNetworking)
        /// Loads the http and https tasks of all sessions made from this configuration through
        /// `cache`, and stores responses as `storing` says.
        public func load(through cache: HTTPCache, storing: CachingURLProtocol.Storing) {
            let facade = EngineURLCache(
                directAccessTo: cache,
                additionalFields: additionalFields
            )
            let others = (protocolClasses ?? []).filter { !($0 is CachingURLProtocol.Type) }
            protocolClasses = [ProtocolRegistry.shared.register(facade, storing)] + others
            urlCache = facade
        }
    #endif

    /// The fields of `httpAdditionalHeaders`, in the order of their names.
    var additionalFields: HeaderFields {
        HeaderFields(
            (httpAdditionalHeaders ?? [:])
                .map { (String(describing: $0.key), String(describing: $0.value)) }
                .sorted { $0.0 < $1.0 }
        )
    }
}
