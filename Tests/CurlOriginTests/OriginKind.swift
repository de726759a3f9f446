import CacheProxy
import CurlOrigin

/// The two clients for origins over plain HTTP, which keep the same rules.
enum OriginKind: CaseIterable {
    /// `CurlOrigin`.
    case curl
    /// `PlainOrigin`, on the event loop for tasks of no worker.
    case plain

    func make(_ configuration: CurlConfiguration = .init()) -> any ConnectingOrigin {
        let curl = CurlOrigin(configuration: configuration)
        switch self {
        case .curl: return curl
        case .plain: return PlainOrigin(configuration: configuration, secure: curl)
        }
    }
}
