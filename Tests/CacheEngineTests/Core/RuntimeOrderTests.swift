import CacheTestSupport
import Synchronization
import Testing

@testable import CacheEngine

/// Only meaningful under ThreadSanitizer: a race reported here is a false report.
@Suite struct RuntimeOrderTests {
    private final class Counter: Sendable {
        let counts = Mutex([0])
        let isOver = Mutex(false)
    }

    @Test func mutexOrdersItsHolders() async {
        let counter = Counter()
        await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    await PlainThread.run {
                        for _ in 0..<20_000 { counter.counts.withLock { $0[0] += 1 } }
                    }
                }
            }
        }
        #expect(counter.counts.withLock { $0 } == [80_000])
    }

    @Test func dropOfACopyHappensBeforeTheNextChangeInPlace() async {
        let counter = Counter()
        await withTaskGroup { group in
            group.addTask {
                await PlainThread.run {
                    for number in 1...20_000 { counter.counts.withLock { $0.append(number) } }
                    counter.isOver.withLock { $0 = true }
                }
            }
            group.addTask {
                let isRight = await PlainThread.run {
                    while !counter.isOver.withLock({ $0 }) {
                        let copy = counter.counts.withLock { $0 }
                        if copy.last != copy.count - 1 { return false }
                    }
                    return true
                }
                #expect(isRight)
            }
        }
        #expect(counter.counts.withLock { $0.count } == 20_001)
    }

    @Test func resumeHappensBeforeTheContinuation() async {
        for number in 0..<1_000 {
            let given = await withUnsafeContinuation { continuation in
                PlainThread.start { continuation.resume(returning: [number]) }
            }
            #expect(given == [number])
        }
    }

    /// The value is generic here, so nothing is specialised for it.
    @Test func finishOfARaceHappensBeforeItsResult() async throws {
        for number in 0..<1_000 {
            let race = Race<HeaderFields>()
            PlainThread.start { race.finish(.success(["X": "\(number)"])) }
            let fields = try await race.result()
            #expect(fields["X"] == "\(number)")
        }
    }
}
