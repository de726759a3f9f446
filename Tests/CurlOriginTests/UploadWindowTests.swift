import CacheEngine
import CacheTestSupport
import Testing

@testable import CurlOrigin

@Suite struct UploadWindowTests {
    @Test(arguments: 0..<64)
    func contentIsSentWholeAndInOrder(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let content = (0..<Int.random(in: 0..<3000, using: &random)).map { UInt8($0 & 0xFF) }
        var window = UploadWindow(count: Bool.random(using: &random) ? content.count : nil)
        var given = 0
        var sent: [UInt8] = []
        var isEnded = false
        for _ in 0..<10_000 where !isEnded {
            if given < content.count, Bool.random(using: &random) {
                let end = min(content.count, given + Int.random(in: 0..<200, using: &random))
                window.append(ByteChunk([UInt8](content[given..<end])))
                given = end
                if given == content.count { window.end() }
                continue
            }
            if content.isEmpty, given == 0 { window.end() }
            var buffer = [UInt8](repeating: 0, count: Int.random(in: 1..<300, using: &random))
            switch buffer.withUnsafeMutableBytes({ window.fill($0) }) {
            case .bytes(let count): sent += buffer[..<count]
            case .end: isEnded = true
            case .held:
                let wasHeld = window.takeSenderHold()
                #expect(wasHeld)
            case .broken: Issue.record("Broken")
            }
            #expect(window.waitingBytes == given - sent.count)
        }
        #expect(isEnded)
        #expect(sent == content)
    }

    @Test(arguments: [0, 2, 4, 100])
    func contentOfTheWrongLengthIsNotFinished(count: Int) {
        var window = UploadWindow(count: count)
        window.append(ByteChunk("abc"))
        window.end()
        var buffer = [UInt8](repeating: 0, count: 10)
        let filling = buffer.withUnsafeMutableBytes { window.fill($0) }
        #expect(filling == .broken)
        #expect((window.failure as? CacheError)?.code == .requestInvalid)
    }

    /// The end may come between the last bytes and the question whether they were the last.
    @Test(arguments: [true, false])
    func contentThatFailsBehindItsLastBytesIsNotFinished(endsShort: Bool) {
        var window = UploadWindow(count: 4)
        window.append(ByteChunk("abc"))
        var buffer = [UInt8](repeating: 0, count: 10)
        let filling = buffer.withUnsafeMutableBytes { window.fill($0) }
        #expect(filling == .bytes(3))
        if endsShort { window.end() } else { window.fail(CancellationError()) }
        #expect(!window.isDrained)
        let next = buffer.withUnsafeMutableBytes { window.fill($0) }
        #expect(next == .broken)
    }

    @Test func sourceThatFailsBehindTheAnnouncedBytesChangesNothing() {
        var window = UploadWindow(count: 3)
        window.append(ByteChunk("abc"))
        var buffer = [UInt8](repeating: 0, count: 10)
        let filling = buffer.withUnsafeMutableBytes { window.fill($0) }
        #expect(filling == .bytes(3))
        window.fail(CancellationError())
        #expect(window.isDrained)
    }
}
