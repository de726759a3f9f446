import CacheTestSupport
import Testing

@testable import CacheEngine
@testable import CacheProxy

/// The content of a request between its client and its reader.
@Suite(.timeLimit(.minutes(1))) struct RequestContentTests {
    /// The reader is slower than the client, so that the window is never empty.
    @Test func pieceThatWasReadIsReleasedWhileOthersWait() async throws {
        let content = RequestContent {}
        func push() { _ = content.push(ByteChunk([UInt8](repeating: 1, count: 8 << 10))) }
        for _ in 0..<4 { push() }
        for _ in 0..<1_000 {
            push()
            weak var storage: ByteStorage?
            storage = try await content.next()?.storage
            #expect(storage == nil)
        }
    }
}
