import Platform

extension Worker {
    /// Takes messages until there are none, or their output or time is enough for one turn.
    ///
    /// A message may be a job that posts the next one: a request that goes through several jobs
    /// makes its way in one turn.
    func takeMessages() {
        var taken = 0
        // No message touches the list, and a change of a local one needs no check for overlap.
        var list: [WorkerMessage] = []
        swap(&list, &messages)
        var next = nextMessage
        defer {
            swap(&list, &messages)
            nextMessage = next
        }
        while turnBytes < Self.turnBytesMax {
            if taken % Self.messagesPerLook == 0, !hasTurnTime() { return }
            taken += 1
            if next == list.count {
                next = 0
                mailbox.take(into: &list)
                if list.isEmpty { return }
            }
            // Moved out, because a copy would retain everything that the message holds.
            var message = WorkerMessage.stop
            swap(&message, &list[next])
            next += 1
            take(message)
        }
    }

    private func take(_ message: consuming WorkerMessage) {
        switch consume message {
        case .informational(let pending, let status, let fields):
            withConnection(of: pending) { inform($0, status: status, fields: fields) }
        case .answered(let pending):
            withConnection(of: pending) { connection in
                if let response = pending.takeResponse() { takeResponse(connection, response) }
            }
        case .chunk(let pending, let chunk):
            withConnection(of: pending) { takeChunk($0, chunk) }
        case .ended(let pending): withConnection(of: pending) { finishResponse($0) }
        case .failed(let pending, let error):
            withConnection(of: pending) { takeFailure($0, error) }
        case .wantsContent(let pending): withConnection(of: pending) { resumeContent($0) }
        case .drain: beginDrain()
        case .stop: isStopped = true
        case .configure(let new): configure(new)
        case .upstream(let command): upstream.take(command)
        case .job(let job): job.runSynchronously(on: mailbox.asUnownedTaskExecutor())
        }
    }

    /// Uses other limits and rules; a limit that runs keeps its beginning.
    private func configure(_ new: ServerConfiguration) {
        let before = limits
        limits = new.timeouts.milliseconds
        for case let connection? in connections {
            guard let deadline = connection.machine.deadline, !Mutant.keepsOldLimits.isOn else {
                continue
            }
            let index = Int(connection.id.index)
            deadlines[index] += limit(deadline) - before[Int(deadline.rawValue)]
        }
        configuration = new
        writer.stripsTags = new.tags == .strip
    }

    /// Messages of a response count only while its connection waits for it.
    private func withConnection(of pending: PendingResponse, _ body: (Connection) -> Void) {
        guard let connection = connection(pending.connection),
            connection.pendingResponse === pending
        else { return }
        body(connection)
        advance(connection)
    }
}
