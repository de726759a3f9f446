/// When a client's connection is read, which time limit runs on it, and how it ends.
///
///     announcing ──PROXY header──▶ open
///       └──fault, time limit, client's end──▶ closed
///
///     open: idle ──bytes──▶ head ──request──▶ answering ──response──▶ idle
///
///     open ──last response, fault──▶ ending ──input may be unread──▶ lingering
///       │                               └──all input read──┐             │
///       └──time limit, client's end, end of a drain──▶ closed ◀──────────┘
///
/// A pure value: it reads no clock and no socket. Every mutating method is one event and returns
/// the worker's action.
///
/// Invariants, checked by `checkInvariants()`:
/// 1. At most one request is open.
/// 2. A lingering connection has no open request, no content, no held input and no queued output.
/// 3. A closed connection stays closed.
/// 4. A connection whose PROXY header is awaited has no request, no content and no queued output,
///    and a time limit that nothing it receives prolongs.
struct ConnectionMachine {
    /// Bytes of unwanted content and its framing that are read to save the connection.
    let discardedBytesMax: Int

    private(set) var input = Input.empty
    private(set) var content = Content.none
    private(set) var course: Course
    /// The limit that runs, if one does.
    private(set) var deadline: Deadline? = .head
    /// The socket may take bytes.
    private(set) var isWritable = true
    /// Bytes were read that could not be used yet.
    private(set) var hasHeldInput = false
    /// Bytes wait for the socket.
    private(set) var hasQueuedOutput = false
    /// At least one request was answered.
    private(set) var hasAnswered = false
    /// Its work was interrupted and goes on after the work of other connections.
    private(set) var waitsForTurn = false
    /// A request was taken, and its response is not complete.
    private(set) var hasOpenRequest = false
    private var discardedBytes = 0

    init(discardedBytesMax: Int, beginsAs course: Course = .open) {
        self.course = course
        self.discardedBytesMax = discardedBytesMax
    }

    var isClosed: Bool { course == .closed }
    var isLingering: Bool { course == .lingering }

    /// Whether bytes of the client can be used now; `hasRoom` tells whether another response can be
    /// queued.
    func usesInput(hasRoom: Bool) -> Bool {
        switch course {
        case .closed: false
        case .announcing: true
        case .lingering: discardedBytes <= discardedBytesMax
        case .open, .ending, .endingUnread:
            switch content {
            case .flowing: true
            case .paused: false
            case .none: course == .open && !hasOpenRequest && hasRoom
            }
        }
    }

    /// Whether bytes that could not be used are kept for later.
    var holdsInput: Bool {
        switch course {
        case .announcing, .open: true
        case .ending, .endingUnread: content != .none
        case .lingering, .closed: false
        }
    }

    /// The limit under which the connection waits for its client alone; `nil` while it is busy.
    ///
    /// A connection that waits may make room for another. So may one whose client still sends
    /// content after its response: that is read only to keep the connection.
    var idleDeadline: Deadline? {
        let isBusy = hasOpenRequest || hasQueuedOutput || waitsForTurn
        if content != .none, Mutant.keepsClientsThatDrip.isOn { return nil }
        return isBusy || isClosed ? nil : deadline
    }

    /// Whether the client has begun something and does not go on with it.
    ///
    /// One that has nothing to ask, or that leaves its connection open after the last response, may
    /// wait until its limit.
    var standsStill: Bool {
        switch deadline {
        case .content, .write: true
        case .head: hasHeldInput || course == .announcing
        case .idle, .linger, nil: false
        }
    }

    private mutating func start(_ deadline: Deadline) -> DeadlineChange {
        self.deadline = deadline
        return .start(deadline)
    }

    private mutating func startIfNone(_ deadline: Deadline) -> DeadlineChange {
        self.deadline == nil ? start(deadline) : .keep
    }

    private mutating func stop() -> DeadlineChange {
        deadline = nil
        return .stop
    }

    /// Starts the limit for what the client sends, or stops it; while bytes wait for the client, the
    /// limit for taking them goes on.
    private mutating func limit(_ deadline: Deadline?) -> DeadlineChange {
        if hasQueuedOutput { return .keep }
        guard let deadline else { return stop() }
        return start(deadline)
    }

    private mutating func end(_ ending: Course = .ending) { course = max(course, ending) }

    func checkInvariants() {
        #if ENGINE_CHECKS
            precondition(!hasQueuedOutput || deadline == .write)
            if course == .announcing {
                precondition(!hasOpenRequest && content == .none && !hasQueuedOutput)
                precondition(deadline == .head)
            }
            guard course == .lingering else { return }
            precondition(!hasOpenRequest && content == .none)
            precondition(!hasHeldInput && !hasQueuedOutput)
        #endif
    }
}

// MARK: - Input

extension ConnectionMachine {
    /// The poller reports what the socket can do now.
    mutating func socketChanged(isReadable: Bool, isWritable: Bool, isEnding: Bool) {
        if isWritable { self.isWritable = true }
        guard input != .ended else { return }
        if isEnding {
            input = .readableToEnd
        } else if isReadable, input == .empty {
            input = .readable
        }
    }

    /// Takes the socket for readable: bytes may have come whose event has not.
    mutating func assumeInput() {
        if input == .empty { input = .readable }
    }

    var isReadable: Bool { input == .readable || input == .readableToEnd }

    /// A read returned bytes.
    ///
    /// A read that fills less than its buffer has emptied the socket, and the next bytes are a new
    /// event; the end of the input is not.
    mutating func read(isShort: Bool) {
        if isShort, input == .readable { input = .empty }
    }

    /// A read found nothing.
    mutating func readNothing() { input = .empty }

    mutating func inputEnded() -> InputEndAction {
        input = .ended
        // A connection without a byte is a probe of the port.
        if course == .announcing { return hasHeldInput ? .refuseHeader : .close }
        return course == .lingering || content != .none && hasOpenRequest ? .close : .goOn
    }

    /// Bytes are kept that could not be used; a head may have begun, and its time with it.
    mutating func inputHeld() -> DeadlineChange {
        hasHeldInput = true
        if course == .announcing { return .keep }
        return !hasOpenRequest && content == .none ? limit(.head) : .keep
    }

    /// No bytes are kept any more.
    mutating func heldInputUsed() { hasHeldInput = false }

    /// The PROXY header is complete; requests may follow.
    mutating func announced() {
        defer { checkInvariants() }
        if course == .announcing { course = .open }
    }

    /// Bytes were dropped: some are read to save the connection, or to let the response arrive.
    mutating func discarded(_ count: Int) {
        discardedBytes += count
        guard discardedBytes > discardedBytesMax else { return }
        end()
        if content != .none { content = .paused }
    }
}

// MARK: - Requests and their content

extension ConnectionMachine {
    /// The head of a request is complete, or refused.
    mutating func requestCame() {
        defer { checkInvariants() }
        #if ENGINE_CHECKS
            precondition(!hasOpenRequest)
        #endif
        hasOpenRequest = true
        discardedBytes = 0
    }

    /// The response has to be waited for; no limit of the client runs meanwhile.
    mutating func responsePending() -> DeadlineChange { limit(nil) }

    /// Content follows the head; `isAwaited` is false while the client waits for a 100.
    mutating func contentBegan(isAwaited: Bool) -> DeadlineChange {
        content = isAwaited ? .flowing : .paused
        return limit(isAwaited ? .content : nil)
    }

    mutating func contentCame() -> DeadlineChange { limit(.content) }

    /// The reader of the content has no room for more.
    mutating func contentFilled() -> DeadlineChange {
        content = .paused
        return limit(nil)
    }

    /// The reader has begun, or has room again.
    mutating func contentWanted() -> DeadlineChange {
        guard content != .none else { return .keep }
        content = .flowing
        return limit(.content)
    }

    mutating func contentEnded() -> DeadlineChange {
        content = .none
        return hasOpenRequest ? limit(nil) : .keep
    }

    /// The content is malformed or too large: where the next request begins is unknown.
    mutating func contentFailed(hasResponseBegun: Bool) -> ContentFaultAction {
        content = .none
        if !hasResponseBegun, hasOpenRequest { return .refuse }
        end(.endingUnread)
        return .endAfterResponse
    }

    /// The open request is refused; the bytes after its head cannot be trusted.
    mutating func refused() {
        content = .none
        hasHeldInput = false
        end(.endingUnread)
    }
}

// MARK: - Responses

extension ConnectionMachine {
    /// A response begins; returns whether the connection goes on after it.
    mutating func responseBegan(_ facts: PersistenceFacts) -> Bool {
        let isLast =
            !facts.mayPersist || facts.isDraining
            || facts.leavesContentUnasked && content != .none
            || facts.contentRest > discardedBytesMax
            || input == .ended && !hasHeldInput
        if isLast { end() }
        return course == .open
    }

    /// A response broke off; the close tells the client.
    mutating func responseBroken() { end() }

    /// The response is complete in the queue; the rest of the request's content is dropped.
    mutating func responseEnded() -> DeadlineChange {
        defer { checkInvariants() }
        #if ENGINE_CHECKS
            precondition(hasOpenRequest)
        #endif
        hasOpenRequest = false
        hasAnswered = true
        guard content != .none else { return .keep }
        content = .flowing
        return limit(.content)
    }

    /// Bytes wait for the socket.
    mutating func outputQueued() -> DeadlineChange {
        guard !hasQueuedOutput else { return .keep }
        hasQueuedOutput = true
        return start(.write)
    }

    /// The socket takes no more for now.
    mutating func outputBlocked() { isWritable = false }

    /// The socket took bytes of those that waited.
    mutating func outputSent(hasMore: Bool) -> DeadlineChange {
        hasQueuedOutput = hasMore
        if hasMore { return start(.write) }
        return content == .flowing ? start(.content) : stop()
    }
}

// MARK: - Waiting and ending

extension ConnectionMachine {
    /// Nothing more can be done until the next event; `endsIdle` closes connections between
    /// requests.
    mutating func settled(endsIdle: Bool) -> SettleAction {
        defer { checkInvariants() }
        if hasQueuedOutput { return .wait(.keep) }
        if hasOpenRequest || course == .lingering { return .wait(.keep) }
        if course > .open { return finish() }
        // The held bytes can never become a complete request.
        if input == .ended { return .close }
        if content != .none {
            guard endsIdle else { return .wait(.keep) }
            // The content is read to keep the connection only.
            end()
            return finish()
        }
        if hasHeldInput { return .wait(startIfNone(.head)) }
        if endsIdle { return .close }
        return .wait(hasAnswered ? start(.idle) : startIfNone(.head))
    }

    private mutating func finish() -> SettleAction {
        let mayHaveMore =
            course == .endingUnread || content != .none || isReadable || hasHeldInput
        guard mayHaveMore, input != .ended else { return .close }
        course = .lingering
        content = .none
        hasHeldInput = false
        discardedBytes = 0
        return .linger(start(.linger))
    }

    /// The limit that ran has passed; none runs now, unless it begins anew.
    ///
    /// `takesOutput` tells whether the client has taken enough of what the system held for it.
    mutating func deadlinePassed(isResponseRunning: Bool, takesOutput: Bool) -> TimeOutAction {
        if hasQueuedOutput, takesOutput { return .wait(start(.write)) }
        deadline = nil
        if course == .announcing { return .refuseHeader }
        guard !hasQueuedOutput, course < .lingering else { return .close }
        if !hasOpenRequest, content == .none { return hasHeldInput ? .refuse : .close }
        // The client reads a response that began before the end of its content.
        guard content != .none, isResponseRunning else { return .close }
        end()
        content = .paused
        return .ignoreContent
    }

    /// The turn of the connection is over; returns whether it joins the line.
    mutating func waitForTurn() -> Bool {
        defer { waitsForTurn = true }
        return !waitsForTurn
    }

    mutating func turnCame() { waitsForTurn = false }

    /// The connection ends now; `endsBody` tells whether the close marks the end of a body.
    mutating func close(endsBody: Bool) -> CloseAction {
        guard !isClosed else { return .nothing }
        course = .closed
        return endsBody && (hasOpenRequest || hasQueuedOutput) ? .reset : .close
    }
}
