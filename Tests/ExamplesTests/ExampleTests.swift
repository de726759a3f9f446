import CacheTestSupport
import Foundation
import FoundationNetworking
import Testing

/// The examples, run as programs with an origin on this machine.
@Suite(.timeLimit(.minutes(1))) struct ExampleTests {
    private func origin() throws -> LoopbackServer {
        try LoopbackServer { request, connection in
            let fields = [("Cache-Control", "max-age=60"), ("ETag", "\"1\"")]
            connection.respond(200, fields, body: "hello \(request.target)")
        }
    }

    @Test func gettingStartedTellsTheSource() async throws {
        let server = try origin()
        let output = try await ExampleProgram("getting-started", [server.baseURL + "/x"]).output()
        #expect(output == "200 8 origin\n")
        #expect(server.requestCount == 1)
    }

    @Test func urlSessionProgramLoadsOnce() async throws {
        let server = try origin()
        let output = try await ExampleProgram("urlsession-program", [server.baseURL + "/x"])
            .output()
        #expect(output == "200, 8 bytes\n200, 8 bytes\n200, 8 bytes\n")
        #expect(server.requestCount == 1)
    }

    @Test func offlineClientShowsWhatItHasSeen() async throws {
        let folder = TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let server = try LoopbackServer { _, connection in
            connection.respond(200, [("Cache-Control", "no-cache")], body: "news")
        }
        let seen = [server.baseURL + "/seen", folder.path]
        #expect(try await ExampleProgram("offline-client", seen).output() == "news\n")
        server.stop()
        #expect(try await ExampleProgram("offline-client", seen).output() == "news (kept)\n")
        let unseen = [server.baseURL + "/unseen", folder.path]
        let output = try await ExampleProgram("offline-client", unseen).output()
        #expect(output.hasPrefix("not available: originUnreachable"))
    }

    @Test func onlyWhenChangedTransfersTwoBodiesForThreeReads() async throws {
        let folder = TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let output = try await ExampleProgram("only-when-changed", [folder.path]).output()
        #expect(output.hasSuffix("bodies sent: 2\n"))
    }

    @Test func neverChangesAsksOnce() async throws {
        let folder = TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let output = try await ExampleProgram("never-changes", [folder.path]).output()
        #expect(output.hasSuffix("life 2: the origin was asked 1 times\n"))
    }

    @Test func serverLoopAnswersFromItsCache() async throws {
        let server = try origin()
        let program = try ExampleProgram("server-loop", [server.baseURL])
        defer { program.end() }
        let greeting = try #require(await program.readLine())
        let address = try #require(greeting.split(separator: " ").last)
        for _ in 0..<3 {
            let url = try #require(URL(string: address + "/page?x"))
            #expect(try await ExampleProgram.load(url) == "hello /page?x")
        }
        #expect(server.requestCount == 1)
        #expect(server.requests.first?.target == "/page?x")
    }

    @Test(arguments: [
        "Content-Length: 100\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ])
    func brokenBodyIsNoWholeResponseOfServerLoop(message: String) async throws {
        let server = try LoopbackServer { _, connection in
            _ = connection.send("HTTP/1.1 200 OK\r\n" + message)
            connection.close()
        }
        let program = try ExampleProgram("server-loop", [server.baseURL])
        defer { program.end() }
        let greeting = try #require(await program.readLine())
        let address = try #require(greeting.split(separator: " ").last)
        let url = try #require(URL(string: address + "/page"))
        await #expect(throws: (any Error).self) { try await ExampleProgram.load(url) }
    }

    @Test func serverLoopForwardsFieldsAndNoContent() async throws {
        let server = try origin()
        let program = try ExampleProgram("server-loop", [server.baseURL])
        defer { program.end() }
        let greeting = try #require(await program.readLine())
        let address = try #require(greeting.split(separator: " ").last)
        var request = URLRequest(url: try #require(URL(string: address + "/page")))
        request.setValue("de", forHTTPHeaderField: "Accept-Language")
        let session = URLSession(configuration: .ephemeral)
        _ = try await session.data(for: request)
        #expect(server.requests.first?.fields.contains { $0 == ("Accept-Language", "de") } == true)
        request.httpMethod = "POST"
        request.httpBody = Data("content".utf8)
        let (_, response) = try await session.data(for: request)
        #expect((response as? HTTPURLResponse)?.statusCode == 501)
        #expect(server.requestCount == 1)
    }

    @Test func silentClientsDoNotStopServerLoop() async throws {
        let server = try origin()
        let program = try ExampleProgram("server-loop", [server.baseURL])
        defer { program.end() }
        let greeting = try #require(await program.readLine())
        let address = try #require(greeting.split(separator: " ").last)
        let url = try #require(URL(string: address + "/page"))
        let port = try #require(url.port.flatMap { UInt16(exactly: $0) })
        // As many as could hold every thread of the program's pool.
        let silent = (0...ProcessInfo.processInfo.activeProcessorCount).compactMap { _ in
            LoopbackSocket.connect(to: port)
        }
        defer { for socket in silent { close(socket) } }
        #expect(try await ExampleProgram.load(url) == "hello /page")
    }
}
