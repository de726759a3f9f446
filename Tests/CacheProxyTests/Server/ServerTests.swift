import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

@testable import CacheProxy

/// The server over a real socket, with a scripted responder in place of the cache.
@Suite struct ServerTests {
    static let get = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"

    static let echo = ScriptedResponder { request in
        let body = try await request.body?.collect().text ?? ""
        return .text("\(request.method) \(request.url) [\(body)]")
    }

    /// A server whose time limits for clients are 300 ms once `body` calls its last argument.
    private static func loweringLimits(
        _ body: (ProxyServer, _ lowerLimits: () -> Void) async throws -> Void
    ) async throws {
        var settings: ServerConfiguration?
        try await withServer(echo) {
            settings = $0
        } _: { server in
            var lower = try #require(settings)
            lower.timeouts.head = .milliseconds(300)
            lower.timeouts.idle = .milliseconds(300)
            lower.timeouts.content = .milliseconds(300)
            try await body(server) { server.configure(lower) }
        }
    }

    @Test func hitIsAnsweredOnTheLoop() async throws {
        let responder = ScriptedResponder.hot { .text("hot \($0.url)", ["Age": "5"]) }
        try await withServer(responder) { server in
            let client = try WireClient(server.port)
            for _ in 0..<3 {
                let response = try await client.exchange(Self.get)
                #expect(response.status == 200 && response.text == "hot http://x/a")
                #expect(response["Via"] == "1.1 me" && response["Age"] == "5")
                #expect(response["Date"] != nil && response["Connection"] == nil)
            }
            #expect(server.counters[0][.hits] == 3 && server.counters[0][.exchanges] == 0)
        }
    }

    @Test func missIsAnsweredByATask() async throws {
        try await withServer(Self.echo) { server in
            let client = try WireClient(server.port)
            #expect(try await client.exchange(Self.get).text == "GET http://x/a []")
            #expect(try await client.exchange(Self.get).text == "GET http://x/a []")
        }
    }

    /// Requests with content share no fetch: each one would cost a request to the origin.
    @Test(arguments: [("GET", false), ("HEAD", false), ("POST", true), ("OPTIONS", true)])
    func lengthOfZeroIsNoContentOfAGet(method: String, hasContent: Bool) async throws {
        let responder = ScriptedResponder { _ in .text("") }
        try await withServer(responder) { server in
            let client = try WireClient(server.port)
            let request = "\(method) / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
            #expect(try await client.exchange(request, isHead: method == "HEAD").status == 200)
        }
        let asked = responder.asked.withLock { $0 }
        #expect(asked.map { $0.body != nil } == [hasContent])
    }

    @Test func headHasNoContent() async throws {
        let responder = ScriptedResponder { _ in
            CacheResponse(status: 200, fields: ["Content-Length": "4"])
        }
        try await withServer(responder) { server in
            let client = try WireClient(server.port)
            for _ in 0..<2 {
                let response = try await client.exchange(
                    "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n",
                    isHead: true
                )
                #expect(response["Content-Length"] == "4")
            }
        }
    }

    @Test func continueIsSentWhenTheContentIsWanted() async throws {
        try await withServer(Self.echo) { server in
            let client = try WireClient(server.port)
            try await client.send(
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
            )
            let interim = try await onThread { try client.socket.read(through: "\r\n\r\n") }
            #expect(
                interim.map { String(decoding: $0, as: UTF8.self) }
                    == "HTTP/1.1 100 Continue\r\n\r\n"
            )
            #expect(try await client.exchange("hello").text == "POST http://x/ [hello]")
            #expect(try await client.exchange(Self.get).status == 200)
        }
    }

    @Test func unwantedContentEndsTheConnectionAfterTheResponse() async throws {
        let responder = ScriptedResponder { _ in .text("no", status: 403) }
        try await withServer(responder) { server in
            let client = try WireClient(server.port)
            let response = try await client.exchange(
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
            )
            #expect(response.status == 403 && response.informational.isEmpty)
            #expect(try await client.isClosed())
        }
    }

    /// After the first KiB as much is left as the server drops, or 1 KiB more.
    @Test(arguments: [(17 << 10, nil), (18 << 10, "close")])
    func endIsAnnouncedIfTooMuchContentIsLeft(length: Int, persistence: String?) async throws {
        let responder = ScriptedResponder { request in
            var count = 0
            if let content = request.body {
                for try await chunk in content {
                    count += chunk.count
                    if count == 1 << 10 { break }
                }
            }
            return .text("no", status: 413)
        }
        try await withServer(responder, configure: { $0.discardedBytesMax = 16 << 10 }) { server in
            let client = try WireClient(server.port)
            let first = String(repeating: "a", count: 1 << 10)
            let response = try await client.exchange(
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(length)\r\n\r\n\(first)"
            )
            #expect(response.status == 413 && response["Connection"] == persistence)
        }
    }

    @Test func smallUnwantedContentIsDrained() async throws {
        let responder = ScriptedResponder { _ in .text("no", status: 403) }
        try await withServer(responder) { server in
            let client = try WireClient(server.port)
            let response = try await client.exchange(
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
            )
            #expect(response.status == 403)
            #expect(try await client.exchange(Self.get).status == 403)
        }
    }

    /// Each chunk has one byte of content and 252 bytes of framing.
    @Test(arguments: [(60, true), (70, false)])
    func droppedContentIsCountedWithItsFraming(chunkCount: Int, goesOn: Bool) async throws {
        let responder = ScriptedResponder { _ in .text("no", status: 404) }
        try await withServer(responder, configure: { $0.discardedBytesMax = 16 << 10 }) { server in
            let chunk = "1;\(String(repeating: "e", count: 246))\r\nx\r\n"
            let client = try WireClient(server.port)
            let early = try await client.exchange(
                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\(chunk)"
            )
            #expect(early.status == 404)
            // The lines arrive in pieces, too.
            let chunks = Array(String(repeating: chunk, count: chunkCount).utf8)
            for start in stride(from: 0, to: chunks.count, by: 5_000) {
                let piece = Array(chunks[start..<min(start + 5_000, chunks.count)])
                try await onThread { try client.socket.write(piece) }
            }
            try await client.send("0\r\n\r\n" + Self.get)
            if goesOn {
                #expect(try await client.response().status == 404)
            } else {
                #expect(try await client.isClosed())
            }
        }
    }

    @Test func oldClientsKeepTheirConnectionOnlyWhenTheyAsk() async throws {
        try await withServer(Self.echo) { server in
            let asking = try WireClient(server.port)
            let request = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
            #expect(try await asking.exchange(request)["Connection"] == "keep-alive")
            #expect(try await asking.exchange(request).status == 200)
            let plain = try WireClient(server.port)
            #expect(try await plain.exchange("GET / HTTP/1.0\r\n\r\n")["Connection"] == "close")
            #expect(try await plain.isClosed())
        }
    }

    @Test(arguments: [true, false])
    func halfClosedClientIsStillAnswered(endsWithRequest: Bool) async throws {
        try await withServer(Self.echo) { server in
            let client = try WireClient(server.port)
            if endsWithRequest {
                try client.socket.end(with: Self.get + Self.get)
            } else {
                try await client.send(Self.get + Self.get)
            }
            #expect(try await client.response().status == 200)
            #expect(try await client.response().status == 200)
            if !endsWithRequest { client.socket.endOutput() }
            #expect(try await client.isClosed())
        }
    }

    /// The bodies exceed the queue limit.
    ///
    /// So every request waits until the response before it has been sent, at once or in pieces.
    @Test(arguments: [32 * 1024, 8 * 1024 * 1024], [true, false])
    func pipelinedRequestsWaitForLargeAnswersToGoOut(bodyBytes: Int, isHit: Bool) async throws {
        let body = ByteChunk([UInt8](repeating: 7, count: bodyBytes))
        let response = CacheResponse(status: 200, body: BodyStream(body))
        let responder = ScriptedResponder(cached: { _ in isHit ? response : nil }) { _ in response }
        try await withServer(responder, configure: { $0.queuedBytesMax = 8 * 1024 }) { server in
            let client = try WireClient(server.port)
            try await client.send(Self.get + Self.get + Self.get)
            for _ in 0..<3 { #expect(try await client.response().body.count == bodyBytes) }
        }
    }

    @Test func interimHeadsGoBeforeTheAnswer() async throws {
        let responder = ScriptedResponder { request in
            request.options.onInformational?(103, ["Link": "</a>"])
            request.options.onInformational?(102, [:])
            request.options.onInformational?(101, [:])
            return .text("done")
        }
        try await withServer(responder) { server in
            let client = try WireClient(server.port)
            let response = try await client.exchange(Self.get)
            #expect(response.informational.map(\.status) == [103, 102])
            #expect(response.informational.first?["Link"] == "</a>")
            let old = try WireClient(server.port)
            #expect(try await old.exchange("GET / HTTP/1.0\r\n\r\n").informational.isEmpty)
        }
    }

    @Test func slowReaderHoldsBackTheSource() async throws {
        let body = FedBody()
        let piece = ByteChunk([UInt8](repeating: 7, count: 64 * 1024))
        for _ in 0..<512 { body.give(piece) }
        body.end()
        let responder = ScriptedResponder { _ in
            CacheResponse(status: 200, body: BodyStream(body, count: 512 * 64 * 1024))
        }
        try await withServer(responder) { server in
            let client = try WireClient(server.port, receiveBytes: 16 * 1024)
            try await client.send(Self.get)
            _ = try await onThread { try client.socket.read(through: "\r\n\r\n") }
            // The body has 32 MiB; before the client reads, only windows and socket buffers fill.
            #expect(body.delivered.load(ordering: .relaxed) < 16 * 1024 * 1024)
            let rest = try await onThread {
                try client.socket.read(exactly: 512 * 64 * 1024)?.count
            }
            #expect(rest == 512 * 64 * 1024)
        }
    }

    @Test func slowConsumerHoldsBackTheClient() async throws {
        let gate = Gate()
        let responder = ScriptedResponder { request in
            await gate.wait()
            var count = 0
            if let body = request.body { for try await chunk in body { count += chunk.count } }
            return .text("\(count)")
        }
        try await withServer(responder) { server in
            let client = try WireClient(server.port)
            let total = 24 * 1024 * 1024
            try await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(total)\r\n\r\n")
            async let sending: Void = onThread {
                try client.socket.write([UInt8](repeating: 1, count: total))
            }
            await gate.open()
            try await sending
            #expect(try await client.response().text == "\(total)")
        }
    }

    @Test func contentThatEndsWhereTheWindowIsFullEnds() async throws {
        let gate = Gate()
        let responder = ScriptedResponder { request in
            guard let body = request.body else { return .text("") }
            await gate.wait()
            var count = 0
            for try await chunk in body { count += chunk.count }
            return .text("\(count)")
        }
        try await withServer(responder) { server in
            let client = try WireClient(server.port)
            let total = RequestContent.windowBytes
            try await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(total)\r\n\r\n")
            try await onThread { try client.socket.write([UInt8](repeating: 1, count: total)) }
            // While other requests are answered, the worker reads all of the content.
            let other = try WireClient(server.port)
            for _ in 0..<50 { #expect(try await other.exchange(Self.get).status == 200) }
            await gate.open()
            #expect(try await client.response().text == "\(total)")
        }
    }

    @Test func partialHeadBehindAnAnswerIsTimedOut() async throws {
        try await Self.loweringLimits { server, lowerLimits async throws in
            let client = try WireClient(server.port)
            try await client.send(Self.get + "G")
            #expect(try await client.response().status == 200)
            lowerLimits()
            #expect(try await client.response().status == 408)
            #expect(try await client.isClosed())
        }
    }

    /// RFC 9112 §2.2: some clients send an empty line after content.
    @Test(arguments: [
        [get + "\r\n"],
        ["POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello\r\n"],
        [get, "\r\n", get], [get, "\r", "\n"],
    ])
    func emptyLineAfterARequestBeginsNoHead(pieces: [String]) async throws {
        try await Self.loweringLimits { server, lowerLimits async throws in
            let client = try WireClient(server.port)
            for piece in pieces {
                try await client.send(piece)
                guard piece.count > 2 else { continue }
                #expect(try await client.response().status == 200)
            }
            lowerLimits()
            #expect(try await client.isClosed())
            #expect(server.counters[0][.timeouts] == 0)
            #expect(server.counters[0][.refused] == 0)
        }
    }

    /// Each of them would begin the idle limit anew.
    @Test func secondEmptyLineBeginsAHead() async throws {
        try await Self.loweringLimits { server, lowerLimits async throws in
            let client = try WireClient(server.port)
            #expect(try await client.exchange(Self.get).status == 200)
            for _ in 0..<2 {
                try await client.send("\r\n")
                await pause(milliseconds: 50)
            }
            lowerLimits()
            #expect(try await client.response().status == 408)
            #expect(try await client.isClosed())
        }
    }

    @Test func clientThatStopsReadingIsTimedOutThoughItAsksOn() async throws {
        let body = ByteChunk([UInt8](repeating: 7, count: 16 << 20))
        let responder = ScriptedResponder { request in
            request.url.hasSuffix("/a")
                ? CacheResponse(status: 200, body: BodyStream(body)) : .text("small")
        }
        try await withServer(
            responder,
            configure: {
                $0.timeouts.write = .milliseconds(300)
                $0.queuedBytesMax = 64 << 20
            }
        ) { server in
            let client = try WireClient(server.port, receiveBytes: 16 * 1024)
            try await client.send(Self.get + "GET /b HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(await eventually { server.counters[0][.timeouts] > 0 })
            #expect(await eventually { server.counters[0][.connectionsOpen] == 0 })
            #expect(server.counters[0][.aborted] == 1)
        }
    }

    /// More content is under way than the server drains; the response must still arrive.
    @Test(arguments: [400 << 10, 4 << 20])
    func answerBeforeTheEndOfALargeUploadArrives(contentBytes: Int) async throws {
        let gate = Gate()
        let responder = ScriptedResponder { _ in
            await gate.wait()
            return CacheResponse(status: 413, body: BodyStream(ByteChunk("too much")))
        }
        try await withServer(responder, configure: { $0.discardedBytesMax = 64 << 10 }) { server in
            let client = try WireClient(server.port)
            try await client.send(
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(contentBytes)\r\n\r\n"
            )
            async let sending: Void = onThread {
                // Fails once the server stops reading.
                try? client.socket.write([UInt8](repeating: 1, count: contentBytes / 2))
            }
            for _ in 0..<20 {
                let other = try WireClient(server.port)
                _ = try await other.exchange("TRACE / HTTP/1.1\r\nHost: x\r\n\r\n")
            }
            await gate.open()
            let response = try await client.response()
            #expect(response.status == 413 && response.text == "too much")
            try await sending
        }
    }

    @Test func clientThatGoesAwayCancelsTheExchange() async throws {
        let body = FedBody()
        body.give("first")
        let responder = ScriptedResponder { _ in
            CacheResponse(status: 200, body: BodyStream(body))
        }
        try await withServer(responder) { server in
            let client = try WireClient(server.port)
            try await client.send(Self.get)
            _ = try await onThread { try client.socket.read(through: "first") }
            client.socket.abort()
            // Only a cancelled exchange releases the connection before its body ends.
            #expect(await eventually { server.counters[0][.connectionsOpen] == 0 })
            #expect(server.counters[0][.aborted] == 1)
        }
    }

    @Test func timeLimitsEndSlowClients() async throws {
        try await Self.loweringLimits { server, lowerLimits async throws in
            let slow = try WireClient(server.port)
            try await slow.send("GET / HTTP/1.1\r\nHos")
            let lazy = try WireClient(server.port)
            try await lazy.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")
            let silent = try WireClient(server.port)
            let idle = try WireClient(server.port)
            #expect(try await idle.exchange(Self.get).status == 200)
            lowerLimits()
            #expect(try await slow.response().status == 408)
            for client in [lazy, silent, idle] { #expect(try await client.isClosed()) }
            // Clients that have nothing to ask end in peace, and are not counted.
            #expect(server.counters[0][.timeouts] == 2)
        }
    }

    @Test func drainFinishesWhatWasBegun() async throws {
        let gate = Gate()
        let responder = ScriptedResponder { _ in
            await gate.wait()
            return .text("late")
        }
        let server = try ProxyServer(
            ServerConfiguration(address: .tcp(host: "127.0.0.1", port: 0), name: "me"),
            responder: responder
        )
        let idle = try WireClient(server.port)
        let busy = try WireClient(server.port)
        try await busy.send(Self.get)
        #expect(await eventually { !responder.urls.isEmpty })
        async let drained: Void = server.drain()
        #expect(try await idle.isClosed())
        await gate.open()
        let response = try await busy.response()
        #expect(response.text == "late" && response["Connection"] == "close")
        await drained
        #expect(throws: WireFailure.self) { try WireClient(server.port) }
    }

    @Test func severalWorkersShareOnePort() async throws {
        try await withServer(Self.echo) {
            $0.workers = 3
        } _: { server in
            for _ in 0..<40 {
                let client = try WireClient(server.port)
                #expect(try await client.exchange(Self.get).status == 200)
            }
            #expect(server.counters.count == 3)
            #expect(server.counters.reduce(0) { $0 + $1[.requests] } == 40)
            #expect(server.counters.count { $0[.requests] > 0 } > 1)
        }
    }

    @Test func portInUseIsAnError() async throws {
        try await withServer(Self.echo) { server in
            _ = #expect(throws: SystemError.self) {
                try ProxyServer(
                    ServerConfiguration(
                        address: .tcp(host: "127.0.0.1", port: server.port),
                        name: "b"
                    ),
                    responder: Self.echo
                )
            }
        }
    }
}

/// Suspends tasks until it is opened.
actor Gate {
    private var isOpen = false
    private var waiting: [UnsafeContinuation<Void, Never>] = []

    func wait() async {
        if isOpen { return }
        await withUnsafeContinuation { waiting.append($0) }
    }

    func open() {
        isOpen = true
        for continuation in waiting { continuation.resume() }
        waiting = []
    }
}
