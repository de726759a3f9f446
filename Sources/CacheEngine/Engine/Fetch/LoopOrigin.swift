/// An origin that an event loop can ask without a task.
///
/// A fetch that needs no wait beside the one for its head then costs no task at all.
package protocol LoopOrigin: Origin, AnyObject {
    /// Whether the calling thread is an event loop that may begin requests.
    var isOnLoop: Bool { get }
    /// Sends the request, and calls `completion` once: when the head of the final response has
    /// arrived, or the exchange has failed or was cancelled.
    ///
    /// The call comes after this method has returned, outside all locks.
    ///
    /// - Returns: The exchange; `nil`, and `completion` is not called, if the request needs `fetch`.
    func begin(
        _ request: consuming OriginRequest,
        _ completion: consuming @escaping @Sendable (consuming LoopAnswer) -> Void
    ) -> (any LoopExchange)?
}

/// The result of a request that an event loop began.
package enum LoopAnswer: Sendable {
    case response(OriginResponse)
    case failure(any Error)
    /// Nothing was sent, and `fetch` may find another way.
    case unsent
}
