import CacheEngine
import CacheTestSupport
import Testing

/// Times that do not fit in 32 bits.
@Suite struct LateClockTests {
    @Test("A response stored after 2106 is reused, from memory and from disk")
    func answersAreReusedAfter2106() async throws {
        for startSeconds in [Int64(UInt32.max) - 30, Int64(UInt32.max), 5_000_000_000] {
            let folder = try Folder()
            let clock = TestClock(startSeconds: startSeconds)
            for round in 0..<2 {
                let stage = try await Stage(Resource(), clock: clock) {
                    $0.backing = .disk(path: folder.path("cache"), capacity: .megabytes(64))
                }
                #expect(try await stage.get().source == (round == 0 ? .origin : .fresh))
                #expect(try await stage.get().source == .fresh)
                clock.advance(seconds: 29)
                #expect(try await stage.get().source == .fresh)
                await stage.end()
            }
            let stage = try await Stage(Resource(), clock: clock) {
                $0.backing = .disk(path: folder.path("cache"), capacity: .megabytes(64))
            }
            clock.advance(seconds: 3)
            #expect(try await stage.get().source == .revalidated)
            #expect(try await stage.cache.remove(CacheRequest(url: Stage.url)))
            #expect(try await stage.get().source == .origin)
            await stage.end()
        }
    }
}
