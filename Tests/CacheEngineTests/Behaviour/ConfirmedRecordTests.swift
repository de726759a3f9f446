import CacheTestSupport
import Testing

@testable import CacheEngine

/// What a confirmation by the origin writes to disk.
@Suite struct ConfirmedRecordTests {
    private let folder: Folder
    private let clock = TestClock()
    private let resource = Resource()

    init() throws {
        folder = try Folder()
        resource.change(body: String(repeating: "0123456789", count: 20_000), tag: "\"1\"")
    }

    private func open() async throws -> Stage {
        let path = folder.path("cache")
        return try await Stage(resource, clock: clock) {
            $0.backing = .disk(path: path, capacity: .megabytes(16))
        }
    }

    private static func reload(_ stage: Stage) async throws {
        stage.clock.advance(seconds: 1)
        let answer = try await stage.get(Stage.url, ["Cache-Control": "no-cache"])
        #expect(answer.source == .revalidated)
        try await stage.cache.flush()
    }

    private static func bytesAccepted(_ stage: Stage) throws -> Int {
        try #require(stage.cache.services.tiers.backing.disk).statistics.bytesAccepted
    }

    @Test(
        "a confirmation that changes nothing but times writes nothing",
        arguments: ["max-age=60", "no-cache"]
    )
    func confirmationWithoutAChangeWritesNothing(directives: String) async throws {
        resource.change(fields: ["Cache-Control": directives])
        let stage = try await open()
        _ = try await stage.get()
        // The order of the fields may change once.
        try await Self.reload(stage)
        let before = try Self.bytesAccepted(stage)
        for _ in 0..<20 { try await Self.reload(stage) }
        #expect(try Self.bytesAccepted(stage) == before)
        // The memory has the newer times.
        #expect(try await stage.get().info.ageSeconds == 0)
        await stage.end()
        let next = try await open()
        let answer = try await next.get()
        #expect(answer.source == (directives == "no-cache" ? .revalidated : .fresh))
        #expect(answer.info.tier == .disk)
        await next.end()
    }

    @Test("a confirmation that changes a field, or makes a response fresh again, is written")
    func confirmationWithAChangeIsWritten() async throws {
        let stage = try await open()
        _ = try await stage.get()
        resource.change(fields: ["Cache-Control": "max-age=60", "X-Number": "2"])
        try await Self.reload(stage)
        stage.clock.advance(seconds: 100)
        #expect(try await stage.get().source == .revalidated)
        await stage.end()
        let next = try await open()
        let answer = try await next.get()
        #expect(answer.source == .fresh)
        #expect(answer.fields["X-Number"] == "2")
        await next.end()
    }

    @Test("the confirmation of a response that the disk has dropped is written")
    func confirmationOfADroppedRecordIsWritten() async throws {
        let stage = try await open()
        _ = try await stage.get()
        try await stage.cache.flush()
        let key = try stage.cache.services.key(of: CacheRequest(url: Stage.url)).key
        let disk = try #require(stage.cache.services.tiers.backing.disk)
        disk.enqueueRemoval(key.hash)
        try await Self.reload(stage)
        await stage.end()
        let next = try await open()
        #expect(try await next.holds())
        await next.end()
    }
}
