import CacheEngine
import CurlOrigin

@testable import CacheProxy

/// The two clients for origins, which keep the same rules.
enum UpstreamKind: CaseIterable {
    /// `PlainOrigin`, on the event loops of the workers.
    case plain
    /// `CurlOrigin`, which the proxy uses for `https`.
    case curl

    func make(_ configuration: CurlConfiguration, _ budget: ConnectionBudget) -> any Origin {
        switch self {
        case .plain: return ProxyService.upstream(configuration, budget)
        case .curl: return CurlOrigin(configuration: configuration)
        }
    }
}
