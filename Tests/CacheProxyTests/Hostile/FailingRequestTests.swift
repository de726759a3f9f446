import CacheEngine
import Foundation
import Synchronization
import Testing

@testable import CacheProxy

/// A request that makes the origin close its connection, and its effect on other requests.
@Suite struct FailingRequestTests {
    /// Before every ten plain requests, a client requests the same page with a field that makes the
    /// origin close the connection.
    @Test(arguments: ["no-store", "max-age=1", "cold"])
    func requestThatAlwaysFailsHarmsNoOtherRequest(kind: String) async throws {
        try await withProxy({ request, socket in
            if request["X-Kill"] != nil { return .end }
            let directive = kind == "cold" ? "max-age=60" : kind
            return try socket.answer(200, ["Cache-Control: \(directive)"], "fine")
        }) { proxy, _ async throws in
            if kind != "cold" { _ = try await proxy.request("/page") }
            proxy.advance(10)
            let harmed = Mutex(0)
            for round in 0..<10 {
                let target = kind == "cold" ? "/page/\(round)" : "/page"
                #expect(try await proxy.request(target, ["X-Kill: 1"]).status >= 200)
                for _ in 0..<10 {
                    let response = try await proxy.request(target)
                    if response.status != 200 || response.text != "fine" {
                        harmed.withLock { $0 += 1 }
                    }
                }
                if kind == "max-age=1" { proxy.advance(10) }
                _ = try await onThread { poll(nil, 0, 20) }
            }
            #expect(harmed.withLock { $0 } == 0)
        }
    }
}
