import CacheEngine
import CurlOrigin

enum ChoosingAnOrigin {
    static func curl() async throws -> HTTPCache {
        var configuration = CurlConfiguration()
        configuration.deadlines.connect = .seconds(2)
        configuration.deadlines.head = .seconds(15)
        configuration.connections.maximumPerHost = 64
        configuration.verification = .authorities(file: "/etc/ssl/own-authority.pem")
        let origin = CurlOrigin(configuration: configuration)
        return try await HTTPCache(origin: origin)
    }
}
