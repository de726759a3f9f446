import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

@testable import CurlOrigin

/// The event loop of an origin on a machine that lacks a file or a thread.
@Suite struct EventLoopTests {
    @Test func loopThatCouldNotStartIsStartedByALaterRequest() async throws {
        let server = try LoopbackServer { _, connection in connection.respond(body: "abc") }
        let starts = Mutex(0)
        let origin = CurlOrigin(configuration: CurlConfiguration()) { configuration in
            let start = starts.withLock { starts in
                starts += 1
                return starts
            }
            if start <= 2 { throw LocalLack.ofEventLoop("Cannot watch sockets: none is left") }
            return try EventLoop.start(configuration)
        }
        let request = OriginRequest(url: server.baseURL)
        // The lack counts against no origin.
        await #expect(throws: LocalLack.self) { _ = try await origin.fetch(request) }
        for _ in 0..<2 {
            #expect(try await origin.fetch(request).body.collect().text == "abc")
        }
        try await origin.connect(to: server.baseURL)
        #expect(starts.withLock { $0 } == 3)
    }
}
