import CacheEngine
import CacheTestSupport
import Platform
import RedisTestSupport
import Testing

@testable import CacheProxy

/// Two proxies with `--fleet` and a real redis-server.
@Suite(
    .enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"),
    .timeLimit(.minutes(2))
)
struct ProxyFleetTests {
    private let folder = TemporaryFolder()

    private func proxy(_ url: String, _ origin: any Origin) async throws -> ProxyService {
        let token = folder.path + "/token"
        if !folder.names().contains("token") {
            let file = fopen(token, "w")
            fputs("secret-word\n", file)
            fclose(file)
        }
        let order = try ConfigurationReader.read([
            "--origin", "http://unused", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
            "--purge-token", token, "--fleet", url, "--drain-timeout", "0.2",
        ])
        guard case .run(let configuration) = order else { throw RedisFailure("no configuration") }
        return try await ProxyService(configuration, upstream: origin)
    }

    private func ask(
        _ proxy: ProxyService,
        _ method: String,
        _ url: String,
        _ fields: [(String, String)] = []
    ) async throws -> (status: Int, text: String) {
        var request = CacheRequest(method: HTTPMethod(method), url: url)
        request.fields = HeaderFields([("Authorization", "Bearer secret-word")] + fields)
        let response = try await proxy.desk.respond(to: request)
        return (response.status, try await response.body.collect().text)
    }

    private func version(_ proxy: ProxyService) async throws -> String {
        let response = try await proxy.cache.respond(to: CacheRequest(url: Machine.host + "/1"))
        return try await response.body.collect().text
    }

    @Test func purgeOfOneProxyReachesTheOther() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let here = try await proxy(redis.url, origin)
        let there = try await proxy(redis.url, origin)
        let isLinked = await eventually {
            await there.cache.statistics.fleet?.isLinked == true
        }
        #expect(isLinked)
        #expect(try await version(there) == "0")
        origin.change("/1")
        let answer = try await ask(here, "PURGE", Machine.host + "/1")
        #expect(answer.status == 200)
        let url = "\"url\":\"\(Machine.host)/1\""
        #expect(
            answer.text == "{\"removed\":0,\(url),\"tags\":0,\"soft\":false,\"replicated\":0}\n"
        )
        #expect(await eventually { (try? await version(there)) == "1" })
        // A purge that waits has reached the other proxy when it is answered.
        origin.change("/1")
        let wait = [("Purge-Wait", "fleet")]
        let waited = try await ask(here, "PURGE", Machine.host + "/1", wait)
        #expect(waited.status == 200)
        let reach = "\"replicated\":0,\"machines\":2,\"applied\":2}\n"
        #expect(waited.text.hasSuffix(reach), "\(waited.text)")
        #expect(try await version(there) == "2")
        let metrics = try await ask(there, "GET", "http://admin/metrics").text
        #expect(metrics.contains("\ncache_fleet_linked 1\n"))
        #expect(metrics.contains("\ncache_fleet_applied_total 2\n"))
        redis.kill()
        #expect(try await ask(here, "PURGE", Machine.host + "/1").status == 503)
        await here.shutDown()
        await there.shutDown()
    }
}
