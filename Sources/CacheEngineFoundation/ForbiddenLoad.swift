internal import Foundation
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import Platform

    /// Prevents URLSession from loading a response that the policy forbids to load.
    ///
    /// A cache of URLSession cannot refuse: without an answer URLSession starts to load, and a
    /// later cancellation is a separate block on its queue. A request may be sent between the two.
    /// But URLSession calls its cache while it occupies the queue that runs both. A cancellation
    /// that waits for the queue before the cache answers therefore runs before the load.
    enum ForbiddenLoad {
        /// Queues `cancel` on the queue that the caller occupies; the answer may follow when this
        /// returns.
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
        /// The maximum number of checks, a tenth of a second in all; after that, one request may be
        /// sent.
        private static let looksMax = 2_000

        private static func isAsleepOrGone(_ path: String) -> Bool {
            guard let state = try? String(contentsOfFile: path, encoding: .utf8) else {
                return true
            }
            return state.contains(") S ")
        }
    }
#endif
