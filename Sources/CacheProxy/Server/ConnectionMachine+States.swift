/// The states of a connection, its time limits, and the actions of its worker.
extension ConnectionMachine {
    /// The client's direction of the socket.
    enum Input: UInt8 {
        /// Every byte was read; an event tells of the next one.
        case empty
        case readable
        /// The end comes after the unread bytes; no event tells of it again.
        case readableToEnd
        /// The client sends no more.
        case ended
    }

    /// The content of the open request.
    enum Content: UInt8 {
        /// The next byte belongs to another request.
        case none
        case flowing
        /// Its reader has no room, or no more of it will be read.
        case paused
    }

    enum Course: UInt8, Comparable {
        /// The proxy in front names its client first, in a PROXY header.
        case announcing
        /// Another request may follow.
        case open
        /// The connection ends after the last response.
        case ending
        /// The same, and some of the client's bytes may stay unread, so the connection lingers.
        case endingUnread
        /// Everything is sent; input is dropped until the client closes.
        case lingering
        case closed

        static func < (left: Course, right: Course) -> Bool { left.rawValue < right.rawValue }
    }

    /// The time limits of a connection, one of which runs at a time.
    enum Deadline: UInt8, CaseIterable {
        /// For the head of a request, for the first request of a connection, and for the PROXY
        /// header in front of it.
        case head
        /// Between two requests.
        case idle
        /// Between two pieces of a request's content.
        case content
        /// Without the client taking a byte, also one that the system holds for it.
        case write
        /// For the client's close, after the last response.
        case linger
    }

    enum DeadlineChange: Hashable {
        case keep
        case stop
        /// The limit runs from now on, in place of any other.
        case start(Deadline)
    }
}

// MARK: - Facts and actions

extension ConnectionMachine {
    /// The facts of a response that decide about its connection.
    struct PersistenceFacts {
        /// The request and the framing of the response allow another request.
        var mayPersist: Bool
        /// The client was never asked for its content, and may send it or not: the start of its
        /// next request is unknown (RFC 9110 §10.1.1).
        var leavesContentUnasked: Bool
        /// Bytes of an announced length that have not come.
        ///
        /// If they are more than is read to save the connection, its end is announced: the client
        /// could not tell whether its next request was processed (RFC 9112 §9.6).
        var contentRest: Int
        var isDraining: Bool
    }

    /// At the end of the input.
    enum InputEndAction: Hashable {
        /// The client may still wait for responses.
        case goOn
        /// Send what is queued, and close: the open request can never be complete.
        case close
        /// Close, and report a PROXY header that broke off.
        case refuseHeader
    }

    /// At content that is malformed or too large.
    enum ContentFaultAction: Hashable {
        /// Refuse the request.
        case refuse
        /// Its response has begun; the connection ends after it.
        case endAfterResponse
    }

    /// When nothing more can be done until the next event.
    enum SettleAction: Hashable {
        case wait(DeadlineChange)
        /// Close the sending direction only, drop the held input, and read on. Unread bytes would
        /// turn a close into a reset, which can destroy the response (RFC 9112 §9.6).
        case linger(DeadlineChange)
        case close
    }

    /// At the end of a time limit.
    enum TimeOutAction: Hashable {
        /// The client is not late.
        case wait(DeadlineChange)
        /// Answer 408.
        case refuse
        /// Read no more content, and tell its reader that it broke off; a response that does not
        /// depend on it goes on.
        case ignoreContent
        case close
        /// Close, and report that the PROXY header is late.
        case refuseHeader
    }

    /// At the end of the connection.
    enum CloseAction: Hashable {
        /// It is closed already.
        case nothing
        case close
        /// The client must not take the close for the end of a body.
        case reset
    }
}
