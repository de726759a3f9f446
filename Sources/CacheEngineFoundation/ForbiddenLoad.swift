internal import Foundation
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import Glibc

    /// Keeps URLSession from loading what a policy forbids to load.
    ///
    /// URLSession knows no way for its cache to refuse: without an answer it starts to load, and a
    /// cancellation comes after that as a piece of work of its own. Between the two a request may go
    /// out. But URLSession asks its cache while it holds the queue on which both are done: a
    /// cancellation that waits for the queue before the answer is given has its turn first, and then
    /// nothing comes between.
    enum ForbiddenLoad {
        /// Lets `cancel` wait for the queue that the caller is on; the answer may follow.
        static func refuse(_ cancel: @escaping @Sendable () -> Void) {
            let thread = Mutex("")
            let hasBegun = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                let own = try? FileManager.default.destinationOfSymbolicLink(atPath: ownThread)
                thread.withLock { $0 = own ?? "" }
                hasBegun.signal()
                cancel()
            }
            hasBegun.wait()
            let state = "/proc/" + thread.withLock { $0 } + "/stat"
            for _ in 0..<looksMax where !isAsleepOrGone(state) { usleep(lookMicroseconds) }
        }

        private static let ownThread = "/proc/thread-self"
        private static let lookMicroseconds: UInt32 = 50
        /// A tenth of a second; a machine that is as busy as that risks one request.
        private static let looksMax = 2_000

        private static func isAsleepOrGone(_ path: String) -> Bool {
            guard let state = try? String(contentsOfFile: path, encoding: .utf8) else {
                return true
            }
            return state.contains(") S ")
        }
    }
#endif
