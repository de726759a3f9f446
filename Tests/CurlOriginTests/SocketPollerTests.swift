import Platform
import Testing

/// The contract that the event loop relies on, for this system's poller and for the portable one.
@Suite struct SocketPollerTests {
    /// A pair of connected descriptors that closes itself.
    private final class Pipe {
        let readEnd: Int32
        let writeEnd: Int32

        init() {
            var ends: [Int32] = [-1, -1]
            pipe(&ends)
            readEnd = ends[0]
            writeEnd = ends[1]
        }

        func fill() {
            var byte: UInt8 = 1
            write(writeEnd, &byte, 1)
        }

        func closeWriteEnd() { close(writeEnd) }

        deinit { close(readEnd) }
    }

    private typealias Wait = (Int32) -> [SocketReadiness]

    private func check(
        watch: (Int32, SocketInterest) -> Void,
        waker: SocketWaker,
        wait: Wait
    ) {
        let pipe = Pipe()
        watch(pipe.readEnd, .readable)
        #expect(wait(0).isEmpty)
        pipe.fill()
        #expect(wait(-1).map(\.socket) == [pipe.readEnd])
        // Level-triggered: the descriptor stays ready until it is read.
        #expect(wait(-1).first?.isReadable == true)
        watch(pipe.readEnd, [])
        #expect(wait(0).isEmpty)
        watch(pipe.writeEnd, .writable)
        #expect(wait(-1).first?.isWritable == true)
        watch(pipe.writeEnd, [])
        // Several wake-ups before a wait end only one wait.
        waker.wake()
        waker.wake()
        #expect(wait(-1).isEmpty)
        #expect(wait(0).isEmpty)
        watch(pipe.readEnd, .readable)
        pipe.closeWriteEnd()
        #expect(wait(-1).first?.isBroken == true)
        watch(pipe.readEnd, [])
        // To stop watching an unwatched or closed socket is no error.
        watch(pipe.readEnd, [])
    }

    @Test func pollerOfThisSystemKeepsItsContract() throws {
        let poller = try SocketPoller()
        defer { poller.close() }
        check(watch: { poller.watch($0, for: $1) }, waker: poller.waker) { timeout in
            var ready: [SocketReadiness] = []
            poller.wait(timeoutMilliseconds: timeout) { ready.append($0) }
            return ready
        }
    }

    @Test func portablePollerKeepsTheSameContract() throws {
        let poller = try PortablePoller()
        defer { poller.close() }
        check(watch: { poller.watch($0, for: $1) }, waker: poller.waker) { timeout in
            var ready: [SocketReadiness] = []
            poller.wait(timeoutMilliseconds: timeout) { ready.append($0) }
            return ready
        }
    }
}
