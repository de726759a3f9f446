import CacheEngine
import CacheTestSupport
import CurlOrigin
import HTTPCaching
import Testing

@testable import CacheProxy

/// A proxy, its cache and one or more origins, all on real sockets, for the length of one test.
struct ProxyHarness: Sendable {
    let service: ProxyService
    let clock: TestClock
    let port: UInt16

    static let host = "example.test"

    func client() throws -> WireClient { try WireClient(port) }

    /// Sends one request on a new connection.
    func request(
        _ target: String,
        _ fields: [String] = [],
        method: String = "GET",
        body: String? = nil
    ) async throws -> WireResponse {
        var text = "\(method) \(target) HTTP/1.1\r\n"
        if !fields.contains(where: { $0.lowercased().hasPrefix("host:") }) {
            text += "Host: \(Self.host)\r\n"
        }
        text += fields.map { $0 + "\r\n" }.joined()
        if let body { text += "Content-Length: \(body.utf8.count)\r\n" }
        return try await client().exchange(text + "\r\n" + (body ?? ""), isHead: method == "HEAD")
    }

    func advance(_ seconds: Int64) { clock.advance(seconds: Double(seconds)) }

    /// The date of the proxy's clock, plus `offset` seconds.
    func date(_ offset: Int64 = 0) -> String { HTTPDate.string(clock.nowSeconds + offset) }
}

/// Runs a proxy in front of these origins; afterwards nothing may keep what it is made of.
func withProxy<Result>(
    origins: [UInt16],
    clock: TestClock = TestClock(),
    configure: (inout ProxyConfiguration) -> Void = { _ in },
    adjust: (inout HTTPCache.Configuration) -> Void = { _ in },
    upstream: (CurlConfiguration, ConnectionBudget) -> any Origin = UpstreamKind.plain.make,
    _ body: (ProxyHarness) async throws -> Result
) async throws -> Result {
    // Every request, flight and response holds the cache, which holds its origins.
    let left = WeakReference<OriginPool>()
    let result = try await runProxy(
        origins: origins,
        clock,
        configure: configure,
        adjust: adjust,
        upstream: upstream,
        left,
        body
    )
    #expect(await eventually { left.isReleased }, "Something keeps the cache after its shutdown")
    return result
}

private func runProxy<Result>(
    origins: [UInt16],
    _ clock: TestClock,
    configure: (inout ProxyConfiguration) -> Void,
    adjust: (inout HTTPCache.Configuration) -> Void,
    upstream: (CurlConfiguration, ConnectionBudget) -> any Origin,
    _ left: WeakReference<OriginPool>,
    _ body: (ProxyHarness) async throws -> Result
) async throws -> Result {
    var configuration = ProxyConfiguration()
    configuration.listen = .tcp(host: "127.0.0.1", port: 0)
    configuration.origins = origins.compactMap { OriginAddress("http://127.0.0.1:\($0)") }
    configuration.name = "me"
    configuration.memory = .megabytes(16)
    configuration.drainTime = .seconds(0.2)
    configure(&configuration)
    let curl = ProxyService.curlConfiguration(configuration)
    let budget = ConnectionBudget(curl.connections)
    let service = try await ProxyService(
        configuration,
        upstream: upstream(curl, budget),
        budget: budget,
        clock: clock,
        adjust: adjust
    )
    left.note(service.pool)
    var port: UInt16 = 0
    if case .tcp(_, let chosen) = service.address { port = chosen }
    let harness = ProxyHarness(service: service, clock: clock, port: port)
    do {
        let result = try await body(harness)
        await service.shutDown()
        return result
    } catch {
        await service.shutDown()
        throw error
    }
}

/// Runs a proxy in front of one scripted origin.
func withProxy<Result>(
    _ script: @escaping WireOrigin.Script,
    configure: (inout ProxyConfiguration) -> Void = { _ in },
    adjust: (inout HTTPCache.Configuration) -> Void = { _ in },
    _ body: (ProxyHarness, WireOrigin) async throws -> Result
) async throws -> Result {
    let origin = try WireOrigin(script)
    defer { origin.stop() }
    return try await withProxy(origins: [origin.port], configure: configure, adjust: adjust) {
        try await body($0, origin)
    }
}
