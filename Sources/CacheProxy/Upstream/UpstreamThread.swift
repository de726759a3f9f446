import CProxyShims
import CacheEngine
import Platform

/// An event loop that only moves the bytes of exchanges with origins.
///
/// Belongs to the thread that runs it, and is deliberately not `Sendable`.
final class UpstreamThread {
    private let mailbox: Mailbox
    private let poller: Poller
    private let upstream: UpstreamTable
    private var messages: [WorkerMessage] = []
    private var isStopped = false

    /// Starts a thread, which ends after the message `stop`.
    static func start() throws(SystemError) -> Mailbox {
        let mailbox = try Mailbox()
        // `nonisolated(unsafe)`: from here on the new thread alone uses it. If it does not start, no
        // code does.
        nonisolated(unsafe) let thread = try UpstreamThread(mailbox)
        try SystemThread.startDetached { thread.run() }
        return mailbox
    }

    private init(_ mailbox: Mailbox) throws(SystemError) {
        self.mailbox = mailbox
        poller = try Poller()
        upstream = UpstreamTable(poller, mailbox)
        guard poller.watchInput(mailbox.descriptor, token: Poller.mailboxToken) else {
            throw SystemError(.watch)
        }
    }

    private func run() {
        mailbox.becomeCurrent()
        while !(isStopped && upstream.isIdle) {
            let isAsleep = !upstream.hasWork && mailbox.fallAsleep()
            let limit = isAsleep ? upstream.millisecondsToSweep : 0
            let count = poller.wait(milliseconds: Int32(limit))
            if isAsleep { mailbox.wakeUp() }
            upstream.beginTurn(now: coarseMilliseconds())
            for index in 0..<count { handle(poller[index]) }
            upstream.takeTurns()
            takeMessages()
            upstream.sweepIfDue()
        }
        upstream.end()
        mailbox.close([])
        mailbox.resignCurrent()
    }

    private func handle(_ event: cp_event) {
        if event.token == Poller.mailboxToken { return mailbox.silenceBell() }
        upstream.handle(event)
    }

    private func takeMessages() {
        mailbox.take(into: &messages)
        for message in messages {
            switch message {
            case .upstream(let command): upstream.take(command)
            case .job(let job): job.runSynchronously(on: mailbox.asUnownedTaskExecutor())
            case .stop: isStopped = true
            default: break
            }
        }
    }
}
