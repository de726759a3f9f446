import CacheEngine
import Testing

@testable import CacheProxy

/// Attempts to exhaust memory, descriptors, time or the origin (X18 to X25).
@Suite struct ExhaustionTests {
    /// X18.
    @Test func purgeIsRefusedWhereClientsConnect() async throws {
        try await withProxy(PoisoningTests.script) { proxy, origin async throws in
            _ = try await proxy.request("/")
            for method in ["PURGE", "purge", "Purge"] {
                #expect(try await proxy.request("/", method: method).status == 405)
            }
            #expect(try await proxy.request("/").isHit)
            #expect(origin.count == 1)
        }
    }

    /// X17, X19.
    @Test func manyRangesAreNotWorthMoreThanTheBody() async throws {
        let body = String(repeating: "0123456789", count: 1_000)
        try await withProxy({ _, socket in
            try socket.answer(200, ["Cache-Control: max-age=60"], body)
        }) { proxy, origin async throws in
            _ = try await proxy.request("/")
            for range in [
                (0..<1_000).map { "\($0)-" }.joined(separator: ","),
                (0..<1_000).map { _ in "0-9999" }.joined(separator: ","),
                (0..<2_000).map { "\($0 * 2)-\($0 * 2)" }.joined(separator: ","),
                (0..<1_000).map { "-\($0 + 1)" }.joined(separator: ","),
            ] {
                let response = try await proxy.request(
                    "/",
                    ["Range: bytes=\(range.prefix(15_000))"]
                )
                #expect(response.body.count <= 2 * body.utf8.count, "\(range.prefix(20))")
            }
            #expect(origin.count == 1)
        }
    }

    @Test func rangeMissAsksTheOriginForNoMoreThanTheRange() async throws {
        try await withProxy({ request, socket in
            try socket.answer(206, ["Content-Range: bytes 0-0/1000000"], "x")
        }) { proxy, origin async throws in
            _ = try await proxy.request("/", ["Range: bytes=0-0"])
            #expect(origin.count == 1 && origin.requests[0]["Range"] == "bytes=0-0")
        }
    }

    /// X20.
    @Test func variantsOfOneResourceAreBounded() async throws {
        try await withProxy({ request, socket in
            try socket.answer(
                200,
                ["Cache-Control: max-age=60", "Vary: X-Foo"],
                request["X-Foo"] ?? "-"
            )
        }) { proxy, origin async throws in
            let client = try proxy.client()
            for number in 0..<300 {
                let response = try await client.exchange(
                    "GET / HTTP/1.1\r\nHost: x\r\nX-Foo: \(number)\r\n\r\n"
                )
                #expect(response.text == "\(number)")
            }
            // The number of variants is limited: the first ones stay until they expire, the rest
            // are not stored.
            let memory = await proxy.service.cache.statistics.memory
            #expect(memory.bytes <= memory.capacityBytes)
            for (number, count) in [(0, 300), (299, 301)] {
                let again = try await client.exchange(
                    "GET / HTTP/1.1\r\nHost: x\r\nX-Foo: \(number)\r\n\r\n"
                )
                #expect(again.text == "\(number)")
                #expect(origin.count == count)
            }
        }
    }

    @Test func hugeHeadsOfAnOriginAreAnError() async throws {
        for head in [
            "Cache-Tag: " + String(repeating: "tag,", count: 1_000_000),
            (0..<20_000).map { "X-\($0): y" }.joined(separator: "\r\n"),
        ] {
            try await withProxy({ _, socket in
                try socket.write("HTTP/1.1 200 OK\r\n\(head)\r\nContent-Length: 1\r\n\r\nx")
                return .end
            }) { proxy, _ async throws in
                #expect(try await proxy.request("/").status == 502)
            }
        }
    }

    /// X21.
    @Test func loopsAreEnded() async throws {
        try await withProxy(PoisoningTests.script) { proxy, origin async throws in
            #expect(try await proxy.request("/", ["Via: 1.1 a, 1.1 me"]).status == 508)
            #expect(try await proxy.request("/", ["CDN-Loop: other, me"]).status == 508)
            for field in ["CDN-Loop: me", "Via: 1.1 me"] {
                let hiding = ["Connection: Via, CDN-Loop", field]
                #expect(try await proxy.request("/", hiding).status == 508)
            }
            let hops = Array(repeating: "1.1 p", count: 30).joined(separator: ",")
            #expect(try await proxy.request("/", ["Via: \(hops)"]).status == 508)
            #expect(try await proxy.request("/", ["Via: 1.1 a"]).status == 200)
            #expect(origin.count == 1)
        }
    }

    @Test func proxyThatIsItsOwnOriginEndsTheLoop() async throws {
        try await withProxy(origins: []) { proxy async throws in
            _ = try proxy.service.reload(Self.pointing(at: proxy.port))
            #expect(try await proxy.request("/").status == 508)
        }
    }

    static func pointing(at port: UInt16) -> ProxyConfiguration {
        var configuration = ProxyConfiguration()
        configuration.origins = [OriginAddress("http://127.0.0.1:\(port)")].compactMap { $0 }
        return configuration
    }

    @Test func headsBeyondTheLimitsAreRefused() async throws {
        try await withProxy(PoisoningTests.script) { proxy, origin async throws in
            for (request, status) in [
                ("GET /\(String(repeating: "a", count: 9_000)) HTTP/1.1\r\nHost: x\r\n\r\n", 414),
                (
                    "GET / HTTP/1.1\r\nHost: x\r\n\(String(repeating: "X: y\r\n", count: 300))\r\n",
                    431
                ),
                (
                    "GET / HTTP/1.1\r\nHost: x\r\nX: \(String(repeating: "a", count: 40_000))\r\n\r\n",
                    431
                ),
                ("\(String(repeating: "A", count: 50)) / HTTP/1.1\r\nHost: x\r\n\r\n", 501),
            ] {
                let client = try proxy.client()
                #expect(try await client.exchange(request).status == status)
                #expect(try await client.isClosed())
            }
            #expect(origin.count == 0)
        }
    }

    /// X22.
    @Test func dribbledHeadsAreTimedOut() async throws {
        try await withProxy(PoisoningTests.script, configure: { $0.headTime = .seconds(2) }) {
            proxy,
            origin async throws in
            let clients = try await onThread {
                try (0..<100).map { _ in
                    let client = try proxy.client()
                    try client.socket.write("GET / HTTP/1.1\r\nX-")
                    return client
                }
            }
            for client in clients { #expect(try await client.response().status == 408) }
            #expect(await eventually { proxy.service.counters[0][.connectionsOpen] == 0 })
            #expect(origin.count == 0)
        }
    }

    /// X23.
    @Test func floodOfMissesLeavesTheHotSetServed() async throws {
        try await withProxy({ request, socket in
            try socket.answer(200, ["Cache-Control: max-age=60"], request.target)
        }) { proxy, origin async throws in
            let hot = try proxy.client()
            let ask = "GET /hot HTTP/1.1\r\nHost: x\r\n\r\n"
            _ = try await hot.exchange(ask)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        let client = try proxy.client()
                        for index in 0..<60 {
                            let target = "/\(number)-\(index)"
                            let response = try await client.exchange(
                                "GET \(target) HTTP/1.1\r\nHost: x\r\n\r\n"
                            )
                            #expect(response.text == target)
                        }
                    }
                }
                for _ in 0..<100 { #expect(try await hot.exchange(ask).isHit) }
                try await group.waitForAll()
            }
            #expect(origin.count == 481)
        }
    }

    /// X24.
    @Test func endlessBodyEndsWithItsReader() async throws {
        try await withProxy({ _, socket in
            try socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            let chunk = "8000\r\n" + String(repeating: "x", count: 32_768) + "\r\n"
            while true { try socket.write(chunk) }
        }) { proxy, origin async throws in
            let client = try proxy.client()
            try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            let some = try await onThread { try client.socket.read(exactly: 40 << 20)?.count }
            #expect(some == 40 << 20)
            client.socket.abort()
            #expect(await eventually { proxy.service.counters[0][.connectionsOpen] == 0 })
            #expect(await proxy.service.cache.statistics.memory.entries == 0)
        }
    }

    @Test func eventsArriveAsTheyAreSent() async throws {
        let gate = TurnStile()
        try await withProxy({ _, socket in
            try socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            for number in 0..<3 {
                try socket.write("data: \(number)\n\n")
                gate.wait()
            }
            return .end
        }) { proxy, _ async throws in
            let client = try proxy.client()
            try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            for number in 0..<3 {
                let event = try await onThread {
                    try client.socket.read(through: "data: \(number)\n\n")
                }
                #expect(event != nil)
                gate.pass()
            }
        }
    }

    /// X25.
    @Test func purgesByTheThousandLeaveHitsAlone() async throws {
        try await withProxy({ _, socket in
            try socket.answer(200, ["Cache-Control: max-age=60", "Cache-Tag: keep"], "x")
        }) { proxy, origin async throws in
            _ = try await proxy.request("/")
            for number in 0..<3_000 { try await proxy.service.cache.purge(tag: "other-\(number)") }
            #expect(try await proxy.request("/").isHit)
            try await proxy.service.cache.purge(tag: "keep")
            #expect(try await proxy.request("/").isHit == false)
            #expect(origin.count == 2)
        }
    }
}
