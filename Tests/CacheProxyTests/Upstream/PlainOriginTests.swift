import CacheEngine
import CacheTestSupport
import CurlOrigin
import Foundation
import Synchronization
import Testing

@testable import CacheProxy

/// Exchanges of the plain client over real sockets; `CurlOriginTests` has those of both clients.
@Suite(.timeLimit(.minutes(1))) struct PlainOriginTests {
    static let bodies: [(head: String, body: String)] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "abc"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "1\r\na\r\n2\r\nbc\r\n0\r\nX: y\r\n\r\n"
        ),
        ("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "abc"),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\n", "abc"),
    ]

    private func answer(_ index: Int) -> [UInt8] {
        [UInt8]((Self.bodies[index].head + Self.bodies[index].body).utf8)
    }

    @Test(arguments: bodies.indices)
    func responseInTwoPiecesArrivesWhole(index: Int) async throws {
        let bytes = answer(index)
        let server = try LoopbackServer { request, connection in
            let count = Int(request.target.dropFirst()) ?? 0
            connection.send([UInt8](bytes.prefix(count)))
            poll(nil, 0, 1)
            connection.send([UInt8](bytes.dropFirst(count)))
            if index == 2 { connection.close() }
        }
        let origin = PlainOrigin()
        for count in 0...bytes.count {
            let request = OriginRequest(url: server.baseURL + "/\(count)")
            let response = try await origin.fetch(request)
            #expect(response.status == 200 && response.fields["X"] == nil)
            #expect(try await response.body.collect().text == "abc", "\(count)")
        }
        #expect(server.connectionCount == (index == 2 ? bytes.count + 1 : 1))
    }

    @Test(arguments: bodies.indices)
    func responseByteByByteArrivesWhole(index: Int) async throws {
        let bytes = answer(index)
        let server = try LoopbackServer { _, connection in
            for byte in bytes {
                connection.send([byte])
                poll(nil, 0, 1)
            }
            if index == 2 { connection.close() }
        }
        let hints = Mutex<[String?]>([])
        let request = OriginRequest(url: server.baseURL) { _, fields in
            hints.withLock { $0.append(fields["Link"]) }
        }
        let response = try await PlainOrigin().fetch(request)
        #expect(try await response.body.collect().text == "abc")
        #expect(hints.withLock { $0 } == (index == 2 ? ["</a>"] : []))
    }

    /// A body without a length is never complete after a reset.
    @Test(arguments: bodies.indices)
    func resetAtEachByteGivesNoWrongBody(index: Int) async throws {
        let bytes = answer(index)
        let server = try LoopbackServer { request, connection in
            connection.send([UInt8](bytes.prefix(Int(request.target.dropFirst()) ?? 0)))
            connection.reset()
        }
        let origin = PlainOrigin()
        for count in 0...bytes.count {
            let request = OriginRequest(url: server.baseURL + "/\(count)")
            do {
                let body = try await origin.fetch(request).body.collect().text
                #expect(body == "abc" && count == bytes.count && index != 2, "\(count)")
            } catch {
                let code = (error as? CacheError)?.code
                #expect(code == .originFailed || code == .bodyTruncated, "\(count) \(error)")
            }
            #expect(server.connectionCount == count + 1)
        }
    }

    @Test func connectionIsKeptAfterEveryCompleteResponse() async throws {
        let server = try LoopbackServer { request, connection in
            switch request.target {
            case "/204": connection.respond(204)
            case "/304": connection.send("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n")
            case "/head": connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
            case "/coded": connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            case "/chunks":
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                connection.send("3\r\nabc\r\n0\r\nX-Trailer: y\r\n\r\n")
            default: connection.respond(body: "abc")
            }
        }
        let origin = PlainOrigin()
        let targets = [
            ("/", "GET", "abc"), ("/204", "GET", ""), ("/304", "GET", ""), ("/head", "HEAD", ""),
            ("/coded", "HEAD", ""), ("/chunks", "GET", "abc"), ("/put", "PUT", "abc"),
            ("/", "GET", "abc"),
        ]
        for (target, method, body) in targets {
            let request = OriginRequest(method: HTTPMethod(method), url: server.baseURL + target)
            let response = try await origin.fetch(request)
            #expect(try await response.body.collect().text == body, "\(target)")
        }
        #expect(server.connectionCount == 1 && server.requestCount == targets.count)
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcX",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nX",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
        "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n"
            + "3\r\nabc\r\n0\r\n\r\n",
    ])
    func connectionIsNotUsedAgain(answer: String) async throws {
        let server = try LoopbackServer { _, connection in connection.send(answer) }
        let origin = PlainOrigin()
        for number in 1...3 {
            let response = try await origin.fetch(OriginRequest(url: server.baseURL))
            #expect(try await response.body.collect().text == "abc")
            #expect(server.connectionCount == number)
        }
    }

    @Test func headOfFourMegabytesIsRefused() async throws {
        let field = "X: " + String(repeating: "x", count: 1 << 16) + "\r\n"
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\n")
            for _ in 0..<64 where !connection.send(field) { return }
            connection.send("Content-Length: 0\r\n\r\n")
        }
        await #expect {
            _ = try await PlainOrigin().fetch(OriginRequest(url: server.baseURL))
        } throws: {
            ($0 as? CacheError)?.code == .originMisbehaved
        }
    }

    /// The window of a small configuration bounds the body that is read with its head, too; one
    /// without any bytes counts as one byte.
    @Test(arguments: [0, 16 * 1024])
    func windowBoundsTheBodyThatArrivesWithItsHead(_ window: Int) async throws {
        let server = try LoopbackServer { _, connection in
            connection.respond(bytes: [UInt8](repeating: 1, count: 200_000))
        }
        let limits = CurlConfiguration.Limits(maximumWindow: .bytes(window))
        let request = OriginRequest(url: server.baseURL)
        let response = try await PlainOrigin(.init(limits: limits)).fetch(request)
        #expect(response.body.availableChunk == nil)
        #expect(try await response.body.collect().count == 200_000)
    }

    @Test func tasksOfALoopAndOfNoneHaveConnectionsOfTheirOwn() async throws {
        let server = try LoopbackServer { request, connection in
            connection.respond(body: request.target)
        }
        let origin = PlainOrigin()
        let loop = try UpstreamThread.start()
        defer { loop.post(.stop) }
        for number in 0..<10 {
            let request = OriginRequest(url: "\(server.baseURL)/\(number)")
            let here = try await origin.fetch(request).body.collect().text
            let there = try await Task(executorPreference: loop) {
                #expect(Mailbox.current === loop)
                return try await origin.fetch(request).body.collect().text
            }.value
            #expect(here == "/\(number)" && there == here)
        }
        #expect(server.connectionCount == 2 && server.requestCount == 20)
    }
}
