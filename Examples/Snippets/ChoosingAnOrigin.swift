import CacheEngine
import CurlOrigin

enum ChoosingAnOrigin {
    static func curl() async throws -> HTTPCache {
        var configuration = CurlConfiguration()
        configuration.deadlines.connectSeconds = 2
        configuration.deadlines.headSeconds = 15
        configuration.connections.perHostMax = 64
        configuration.verification = .authorities(file: "/etc/ssl/own-authority.pem")
        let origin = CurlOrigin(configuration: configuration)
        return try await HTTPCache(origin: origin)
    }
}
