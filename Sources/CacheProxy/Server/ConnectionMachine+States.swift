/// The states of a connection, and its time limits.
extension ConnectionMachine {
    /// The client's direction of the socket.
    enum Input: UInt8 {
        /// Every byte was read; an event tells of the next one.
        case empty
        case readable
        /// The end lies behind the unread bytes; no event tells of it again.
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
        /// The connection ends behind the last response.
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
        /// Without the client taking a byte.
        case write
        /// For the client's close, behind the last response.
        case linger
    }

    enum DeadlineChange: Hashable {
        case keep
        case stop
        /// The limit runs from now on, in place of any other.
        case start(Deadline)
    }
}
