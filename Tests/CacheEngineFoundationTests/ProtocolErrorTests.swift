import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Testing

/// The errors of tasks that load through a cache: Apple's codes, and one clear line each.
@Suite(.timeLimit(.minutes(1))) struct ProtocolErrorTests {
    /// The error of a data and of a download task, which must be the same.
    private func failure(
        _ session: URLSession,
        _ url: String,
        _ change: (inout URLRequest) -> Void = { _ in }
    ) async throws -> URLError? {
        var request = URLRequest(url: try #require(URL(string: url)))
        change(&request)
        var errors: [URLError] = []
        do {
            _ = try await session.data(for: request)
        } catch {
            errors.append(try #require(error as? URLError))
        }
        do {
            _ = try await session.download(for: request)
        } catch {
            errors.append(try #require(error as? URLError))
        }
        #expect(errors.first?.code == errors.last?.code)
        return errors.last
    }

    @Test func missUnderDontLoadIsResourceUnavailable() async throws {
        let fixture = try await LoadingFixture()
        let error = try await failure(fixture.session, fixture.server.baseURL) {
            $0.cachePolicy = .returnCacheDataDontLoad
        }
        #expect(error?.code.rawValue == -1008)
        #expect(error?.localizedDescription.isEmpty == false)
        #expect(error?.failingURL?.absoluteString == fixture.server.baseURL)
        #expect(fixture.server.requestCount == 0)
    }

    @Test func refusedConnectionIsCannotConnect() async throws {
        let session = try await URLSession.loading()
        let error = try await failure(session, "http://127.0.0.1:\(ClosedPort.number)/")
        #expect(error?.code.rawValue == -1004)
    }

    @Test func silentOriginIsATimeout() async throws {
        let server = try LoopbackServer { _, connection in connection.waitForClose() }
        let session = try await URLSession.loading()
        let error = try await failure(session, server.baseURL) { $0.timeoutInterval = 1 }
        #expect(error?.code.rawValue == -1001)
    }

    @Test(arguments: [true, false])
    func brokenConnectionIsALostConnection(sendsHead: Bool) async throws {
        let server = try LoopbackServer { _, connection in
            if sendsHead { connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc") }
            connection.close()
        }
        let session = try await URLSession.loading()
        let error = try await failure(session, server.baseURL)
        #expect(error?.code.rawValue == -1005)
    }

    @Test func invalidResponseIsABadResponse() async throws {
        let server = try LoopbackServer { _, connection in connection.respond(304) }
        let session = try await URLSession.loading()
        let error = try await failure(session, server.baseURL)
        #expect(error?.code == .badServerResponse)
    }

    @Test func urlWithoutAHostIsABadURL() async throws {
        let session = try await URLSession.loading()
        #expect(try await failure(session, "http:///path")?.code == .badURL)
    }

    @Test func cacheThatWasShutDownIsOneClearError() async throws {
        let fixture = try await LoadingFixture()
        await fixture.cache.shutDown()
        let error = try await failure(fixture.session, fixture.server.baseURL)
        #expect(error?.code == .unknown)
        let cause = error?.userInfo[NSUnderlyingErrorKey] as? CacheError
        #expect(cause?.code == .shutDown)
        #expect(error?.localizedDescription == cause?.detail)
        #expect(fixture.server.requestCount == 0)
    }

    @Test func sessionThatLostItsCacheSaysSo() async throws {
        let server = try LoopbackServer { _, connection in connection.respond() }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.load(
            through: try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin())
        )
        configuration.urlCache = nil
        let session = URLSession(configuration: configuration)
        let error = try await failure(session, server.baseURL)
        #expect(error?.localizedDescription.contains("load(through:)") == true)
        #expect(server.requestCount == 0)
    }
}
