import CacheEngine
import Testing

@testable import CacheProxy

/// More attempts to deliver one client's response to another, or to evict popular entries (X10 to
/// X20).
@Suite struct SharingTests {
    /// X10: an explicit lifetime is the origin's own decision.
    @Test func errorsWithAnExplicitLifetimeAreStored() async throws {
        for status in [400, 403, 405, 413, 414, 501] {
            for (fields, count) in [([], 2), (["Cache-Control: max-age=60"], 1)] {
                try await withProxy({ _, socket in try socket.answer(status, fields, "no") }) {
                    proxy,
                    origin async throws in
                    for _ in 0..<2 { #expect(try await proxy.request("/").status == status) }
                    #expect(origin.count == count, "\(status) \(fields)")
                }
            }
        }
    }

    /// X11: the other requests already wait for the fetch when its response arrives.
    @Test func refusalOfOneClientIsNotSharedWithRequestsThatWaitForIt() async throws {
        for status in [400, 401, 406, 407, 416] {
            let gate = TurnStile()
            try await withProxy({ request, socket in
                if request.number == 0 {
                    gate.wait()
                    return try socket.answer(status, [], "no")
                }
                return try socket.answer(200, ["Cache-Control: max-age=60"], "yes")
            }) { proxy, origin async throws in
                async let first = proxy.request("/")
                #expect(await eventually { origin.count == 1 })
                try await withThrowingTaskGroup(of: WireResponse.self) { group in
                    for _ in 0..<8 { group.addTask { try await proxy.request("/") } }
                    let counters = proxy.service.counters[0]
                    #expect(await eventually { counters[.exchanges] == 9 })
                    gate.pass()
                    for try await response in group {
                        #expect(response.text == "yes", "\(status)")
                    }
                }
                #expect(try await first.status == status)
            }
        }
    }

    /// X12: a redirect that repeats one client's claim reaches that client only.
    @Test func reflectedRedirectIsNotShared() async throws {
        for status in [301, 302, 303, 307, 308] {
            try await withProxy({ request, socket in
                let host = request["X-Forwarded-Host"] ?? request["Host"] ?? ""
                return try socket.answer(status, ["Location: http://\(host)/next"], "")
            }) { proxy, _ async throws in
                _ = try await proxy.request("/", ["X-Forwarded-Host: evil"])
                let next = try await proxy.request("/")["Location"]
                #expect(next == "http://\(ProxyHarness.host)/next", "\(status)")
            }
        }
    }

    /// X14.
    @Test func varyThatVanishesLeavesNoVariantBehind() async throws {
        try await withProxy({ request, socket in
            let vary = request.number == 0 ? ["Vary: X-Foo"] : []
            return try socket.answer(
                200,
                ["Cache-Control: max-age=5"] + vary,
                "\(request.number)"
            )
        }) { proxy, origin async throws in
            #expect(try await proxy.request("/", ["X-Foo: 1"]).text == "0")
            #expect(try await proxy.request("/", ["X-Foo: 2"]).text == "1")
            proxy.advance(6)
            #expect(try await proxy.request("/", ["X-Foo: 1"]).text == "2")
            #expect(try await proxy.request("/", ["X-Foo: 1"]).text == "2")
            #expect(origin.count == 3)
        }
    }

    /// X17.
    @Test(arguments: [
        ("bytes=-20", 206, "0123456789"), ("bytes=-0", 416, ""), ("bytes=10-", 416, ""),
        ("bytes=-9223372036854775808", 206, "0123456789"),
        ("bytes=-18446744073709551616", 206, "0123456789"),
        ("bytes=5-9223372036854775807", 206, "56789"),
        ("bytes=18446744073709551615-18446744073709551616", 416, ""),
        ("bytes=18446744073709551617-3", 416, ""),
        ("bytes=00000000000000000000000000000000000000000001-2", 206, "12"),
    ])
    func numbersBeyondEveryBodyAreHarmless(_ row: (String, Int, String)) async throws {
        try await withProxy({ _, socket in
            try socket.answer(200, ["Cache-Control: max-age=60", "ETag: \"a\""], "0123456789")
        }) { proxy, origin async throws in
            _ = try await proxy.request("/")
            let response = try await proxy.request("/", ["Range: \(row.0)"])
            let isWhole = response.status == 200 && response.text == "0123456789"
            #expect(isWhole || response.status == row.1 && (row.1 == 416 || response.text == row.2))
            #expect(origin.count == 1)
        }
    }

    /// X20: ever new queries stay within the memory limit, and popular entries stay stored.
    @Test func madeUpQueriesStayWithinTheMemoryAndLeaveTheHotAnswer() async throws {
        let body = String(repeating: "x", count: 8_192)
        try await withProxy(
            { _, socket in try socket.answer(200, ["Cache-Control: max-age=60"], body) },
            configure: { $0.memory = .megabytes(4) }
        ) { proxy, origin async throws in
            let client = try proxy.client()
            func get(_ target: String) async throws -> WireResponse {
                try await client.exchange("GET \(target) HTTP/1.1\r\nHost: x\r\n\r\n")
            }
            for number in 0..<2_000 {
                _ = try await get("/?busting=\(number)")
                if number % 10 == 0 { _ = try await get("/hot") }
            }
            #expect(try await get("/hot").isHit)
            let memory = await proxy.service.cache.statistics.memory
            #expect(memory.bytes <= memory.capacityBytes && memory.entries < 1_000)
        }
    }

    /// X22: a client that does not read holds a window of its response, not all of it.
    @Test func unreadAnswersHoldAWindowEach() async throws {
        let body = String(repeating: "x", count: 8 << 20)
        try await withProxy({ _, socket in
            try socket.write("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n")
            try socket.write("Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
            return .end
        }) { proxy, origin async throws in
            let clients = try await onThread {
                try (0..<20).map { number in
                    let client = try WireClient(proxy.port, receiveBytes: 4_096)
                    try client.socket.write("GET /\(number) HTTP/1.1\r\nHost: x\r\n\r\n")
                    return client
                }
            }
            #expect(await eventually { origin.count == 20 })
            for client in clients { client.socket.abort() }
            #expect(await eventually { proxy.service.counters[0][.connectionsOpen] == 0 })
            #expect(await proxy.service.cache.statistics.memory.entries == 0)
        }
    }
}
