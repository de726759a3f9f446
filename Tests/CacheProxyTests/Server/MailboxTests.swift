import CacheEngine
import Foundation
import Platform
import Synchronization
import Testing

@testable import CacheProxy

/// The mailbox of a worker as the executor of its tasks.
@Suite struct MailboxTests {
    @Test func tasksOfARequestRunOnTheThreadOfTheirWorker() async throws {
        try await withServer(ThreadResponder()) { server in
            let client = try WireClient(server.port)
            for _ in 0..<3 {
                let response = try await client.exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(response.text == "1 thread, a worker's")
            }
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func tasksOfAnEndedWorkerRunElsewhere() async throws {
        let mailbox = try Mailbox()
        let waiting = Task(executorPreference: mailbox) { 1 }
        mailbox.close([])
        let late = Task(executorPreference: mailbox) { 2 }
        #expect(await waiting.value + late.value == 3)
    }

    @Test func messageAfterFallingAsleepRingsTheBell() throws {
        let mailbox = try Mailbox()
        #expect(mailbox.fallAsleep())
        mailbox.post(.stop)
        var bell = pollfd(fd: mailbox.descriptor, events: Int16(POLLIN), revents: 0)
        #expect(poll(&bell, 1, 0) == 1)
        #expect(!mailbox.fallAsleep())
    }

    /// A server that cannot start leaves its path to the next one.
    @Test func serverWithoutAMailboxLeavesNoSocketFile() {
        let path = NSTemporaryDirectory() + "cache-proxy-\(UUID().uuidString.prefix(8))"
        let error = #expect(throws: SystemError.self) {
            try ProxyServer(
                ServerConfiguration(address: .unix(path: path), name: "me"),
                responder: ThreadResponder(),
                clock: SystemClock(),
                report: { _ in },
                makeMailbox: { () throws(SystemError) -> Mailbox in
                    throw SystemError(.watch, code: EMFILE)
                }
            )
        }
        #expect(error?.attempt == .watch)
        #expect(!FileManager.default.fileExists(atPath: path))
    }
}

/// Answers with the number of threads that its task ran on.
private struct ThreadResponder: TaskResponder {
    func respond(to request: CacheRequest) async throws -> CacheResponse {
        var threads: Set<UInt> = []
        var isOfAWorker = true
        for _ in 0..<10 {
            threads.insert(SystemThread.currentNumber)
            isOfAWorker = isOfAWorker && Mailbox.current != nil
            await Task.yield()
        }
        let text = "\(threads.count) thread, \(isOfAWorker ? "a worker's" : "no worker's")"
        return CacheResponse(status: 200, body: BodyStream(ByteChunk(text)))
    }
}
