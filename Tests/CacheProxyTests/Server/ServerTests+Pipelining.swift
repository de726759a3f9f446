import CacheEngine
import CacheTestSupport
import Foundation
import Synchronization
import Testing

@testable import CacheProxy

/// Requests that arrive together, or in pieces.
extension ServerTests {
    @Test func pipelinedRequestsAreAnsweredInOrder() async throws {
        let responder = ScriptedResponder(
            cached: { $0.url.hasSuffix("hot") ? .text("hot") : nil },
            { .text("cold \($0.url)") }
        )
        try await withServer(responder) { server in
            let client = try WireClient(server.port)
            var wanted: [String] = []
            var text = ""
            for number in 0..<200 {
                let isHot = number % 3 != 0
                text += "GET /\(number)\(isHot ? "hot" : "") HTTP/1.1\r\nHost: x\r\n\r\n"
                wanted.append(isHot ? "hot" : "cold http://x/\(number)")
            }
            try await client.send(text)
            for answer in wanted { #expect(try await client.response().text == answer) }
        }
    }

    /// The pipeline exceeds one turn of the connection.
    @Test func aPipelineOfManyTurnsIsAnsweredWhole() async throws {
        let responder = ScriptedResponder.hot { .text("\($0.url.dropFirst(9))") }
        try await withServer(responder) { server in
            let client = try WireClient(server.port)
            let requests = (0..<2_500).map { "GET /\($0) HTTP/1.1\r\nHost: x\r\n\r\n" }
            try await client.send(requests.joined())
            for number in requests.indices {
                #expect(try await client.response().text == "\(number)")
            }
        }
    }

    /// Each part has an entry of its own, 256 times as large.
    @Test func smallPartsThatWaitForTheirClientHoldNoEntry() async throws {
        let storages = BodyStorages()
        let responder = ScriptedResponder.hot { request in
            let body = ByteChunk(count: 1 << 20) { $0[2_000] = UInt8(request.url.utf8.count) }
            storages.note(body)
            return CacheResponse(status: 200, body: BodyStream(body[2_000..<6_097]))
        }
        try await withServer(responder) { server in
            let client = try WireClient(server.port, receiveBytes: 2_048)
            let targets = (0..<2_500).map { String(repeating: "a", count: 1 + $0 % 50) }
            let text = targets.map { "GET /\($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined()
            async let writing: Void = client.send(text)
            #expect(try await storages.heldAtRest() <= 2)
            #expect(storages.made > 57 && storages.made < targets.count)
            for target in targets {
                let response = try await client.response()
                #expect(response.body.count == 4_097)
                #expect(response.body.first == UInt8(target.utf8.count + "http://x/".utf8.count))
            }
            try await writing
        }
    }

    @Test func pipelinedContentStaysWithItsRequest() async throws {
        try await withServer(Self.echo) { server in
            let client = try WireClient(server.port)
            try await client.send(
                "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
                    + "POST /2 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "3\r\nabc\r\n0\r\n\r\nGET /3 HTTP/1.1\r\nHost: x\r\n\r\n"
            )
            #expect(try await client.response().text == "POST http://x/1 [hello]")
            #expect(try await client.response().text == "POST http://x/2 [abc]")
            #expect(try await client.response().text == "GET http://x/3 []")
        }
    }

    @Test(arguments: UInt64(0)..<64)
    func answersDoNotDependOnHowRequestsAreSplit(_ seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        // `large` exceeds the queue of a client; `upload` fills the window of the content.
        let large = String(repeating: "0123456789", count: 30_000)
        let upload = String(repeating: "x", count: RequestContent.windowBytes)
        let requests = [
            ("GET /hot HTTP/1.1\r\nHost: x\r\n\r\n", "hot"),
            ("GET /hot/large HTTP/1.1\r\nHost: x\r\n\r\n", large),
            ("GET /cold/large HTTP/1.1\r\nHost: x\r\n\r\n", large),
            (
                "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
                "POST http://x/1 [hello]"
            ),
            (
                "PUT /2 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "3;x=y\r\nabc\r\nb\r\n0123456789a\r\n0\r\nT: u\r\n\r\n",
                "PUT http://x/2 [abc0123456789a]"
            ),
            (
                "PUT /3 HTTP/1.1\r\nHost: x\r\nContent-Length: \(upload.utf8.count)\r\n\r\n"
                    + upload,
                "PUT http://x/3 [\(upload)]"
            ), ("GET /4 HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://x/4 []"),
        ]
        let chosen = (0..<8).map { _ in requests.randomElement(using: &random) ?? requests[0] }
        let bytes = Array(chosen.map(\.0).joined().utf8)
        let pieceBytesMax = [60, 3_000, 200_000].randomElement(using: &random) ?? 60
        var pieces: [[UInt8]] = []
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + Int.random(in: 1...pieceBytesMax, using: &random))
            pieces.append(Array(bytes[start..<end]))
            start = end
        }
        let responder = ScriptedResponder(
            cached: { request in
                guard request.url.contains("/hot") else { return nil }
                return .text(request.url.hasSuffix("large") ? large : "hot")
            },
            { request in
                if request.url.hasSuffix("large") { return .text(large) }
                return try await Self.echo.respond(to: request)
            }
        )
        let sent = pieces
        let endsFirst = Bool.random(using: &random)
        try await withServer(responder) { server in
            let client = try WireClient(server.port)
            async let writing: Void = onThread {
                for piece in sent { try client.socket.write(piece) }
                if endsFirst { client.socket.endOutput() }
            }
            for row in chosen { #expect(try await client.response().text == row.1) }
            try await writing
            if endsFirst { #expect(try await client.isClosed()) }
        }
    }
}

/// The storages of a test's bodies.
private final class BodyStorages: Sendable {
    /// `@unchecked Sendable`: any thread may read a weak reference.
    private struct Place: @unchecked Sendable {
        weak var storage: AnyObject?
    }

    private let places = Mutex<[Place]>([])

    var made: Int { places.withLock { $0.count } }
    private var held: Int { places.withLock { $0.count { $0.storage != nil } } }

    func note(_ body: ByteChunk) { places.withLock { $0.append(Place(storage: body.storage)) } }

    /// The number of those that the server holds once it makes no more of them.
    func heldAtRest() async throws -> Int {
        try await onThread { [self] in
            var count: Int
            repeat {
                count = made
                poll(nil, 0, 200)
            } while count == 0 || count != made
            return held
        }
    }
}
