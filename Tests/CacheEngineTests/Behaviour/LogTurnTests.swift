import CacheTestSupport
import Testing

@testable import CacheEngine

/// The entries that are still on disk once its log has been written all around.
@Suite struct LogTurnTests {
    private static let hotCount = 20
    private let folder: Folder

    init() throws { folder = try Folder() }

    private func open(_ fields: HeaderFields) async throws -> Stage {
        let origin = ScriptedOrigin { request, _ in
            let seed = request.url.utf8.reduce(7) { $0 &* 31 &+ UInt64($1) }
            var random = SeededRandom(seed: seed)
            let body = (0..<10_000).map { _ in UInt8(32 + random.next() % 90) }
            return .whole(fields: fields, body: String(decoding: body, as: UTF8.self))
        }
        let path = folder.path("cache")
        return try await Stage(origin) {
            $0.memory = .megabytes(64)
            $0.backing = .disk(path: path, capacity: .megabytes(16))
        }
    }

    private static func hot(_ number: Int) -> String { "http://example.com/hot/\(number)" }

    /// Requests twice what the disk holds, each URL once, and hot ones in between.
    private static func turn(_ stage: Stage, _ name: String = "once") async throws {
        for number in 0..<3_000 {
            _ = try await stage.get("http://example.com/\(name)/\(number)")
            if number % 5 == 0 { _ = try await stage.get(hot(number / 5 % hotCount)) }
            if number % 200 == 0 { try await stage.cache.flush() }
        }
        try await stage.cache.flush()
    }

    private static func heldCount(_ stage: Stage) async throws -> Int {
        var count = 0
        for number in 0..<hotCount where try await stage.holds(hot(number)) { count += 1 }
        return count
    }

    @Test(
        "what the memory serves is on disk when the process starts anew",
        arguments: [[:], ["Vary": "Accept-Encoding"]] as [HeaderFields]
    )
    func usesInMemoryKeepARecord(_ fields: HeaderFields) async throws {
        var fields = fields
        fields["Cache-Control"] = "max-age=86400"
        let first = try await open(fields)
        try await Self.turn(first)
        #expect(await first.cache.statistics.diskSegmentsReclaimed > 0)
        await first.end()
        let second = try await open(fields)
        #expect(try await Self.heldCount(second) == Self.hotCount)
        // Of the others, each was asked for once.
        #expect(try await second.holds("http://example.com/once/0") == false)
        await second.end()
    }

    @Test(
        "the index stays on disk with its variants, also if no memory has it, and after soft purges"
    )
    func indexStaysWithItsVariants() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=1", "Vary": "Accept-Encoding"]
        let first = try await open(fields)
        for number in 0..<Self.hotCount { _ = try await first.get(Self.hot(number)) }
        _ = try await first.cache.purge(.everything, isSoft: true)
        // The variants are stored again, the indexes are not.
        for turn in 0..<40 {
            first.clock.advance(seconds: 2)
            for number in 0..<Self.hotCount { _ = try await first.get(Self.hot(number)) }
            try await first.cache.flush()
            await first.cache.relieveMemoryPressure()
            for number in 0..<100 {
                _ = try await first.get("http://example.com/\(turn)/\(number)")
            }
        }
        await first.end()
        let second = try await open(fields)
        #expect(try await Self.heldCount(second) == Self.hotCount)
        await second.end()
    }

    @Test("an index that the log has dropped is written again with its next variant")
    func indexThatTheLogHasDroppedIsWrittenAgain() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=10", "Vary": "Accept-Encoding"]
        let first = try await open(fields)
        _ = try await first.get(Self.hot(0))
        try await first.cache.flush()
        for number in 0..<3_000 {
            _ = try await first.get("http://example.com/once/\(number)")
            if number % 200 == 0 { try await first.cache.flush() }
        }
        #expect(await first.cache.statistics.diskSegmentsReclaimed > 0)
        first.clock.advance(seconds: 20)
        _ = try await first.get(Self.hot(0))
        await first.end()
        let second = try await open(fields)
        #expect(try await second.holds(Self.hot(0)))
        await second.end()
    }
}
