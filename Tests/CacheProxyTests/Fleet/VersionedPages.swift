import CacheTestSupport
import Platform
import Synchronization

/// The pages of an origin, their versions and purges, and the judgement of each answer.
final class VersionedPages: Sendable {
    static let count = 100

    private struct Page {
        var version = 0
        /// The versions that purges ended, and the times of their receipts.
        var purges: [(version: Int, time: UInt64)] = []
        /// The newest version that a purge with any receipt announced.
        var announced = 0
    }

    private struct State {
        var pages = [Page](repeating: Page(), count: VersionedPages.count)
        var answers = 0
        var failures: [String] = []
        var lateAnswers: [LateAnswer] = []
        /// The time from which the machines that were suspended must have read what they missed.
        var caughtUp: [String: UInt64] = [:]
    }

    /// An answer from before a purge, to a request that began after the time that is allowed.
    private struct LateAnswer {
        let time: Range<UInt64>
        let text: String
    }

    /// The time in which the machines had no processor is not theirs.
    let witness = StallWitness()
    private let state = Mutex(State())
    /// The time after a receipt within which a machine may still serve what was purged: one that is
    /// cut off notices that within its lag, here a second.
    private let allowedNanoseconds: UInt64 = 2_500_000_000
    /// The time within which a machine that was suspended reads what it missed.
    private let catchingUpNanoseconds: UInt64 = 200_000_000

    var answers: Int { state.withLock { $0.answers } }
    var violations: [String] {
        let (failures, late) = state.withLock { ($0.failures, $0.lateAnswers) }
        return failures
            + late.filter { witness.busyNanoseconds($0.time) >= allowedNanoseconds }.map(\.text)
    }

    func version(_ page: Int) -> Int { state.withLock { $0.pages[page].version } }

    /// The pages as an origin that confirms.
    func origin() throws -> WireOrigin {
        try WireOrigin { [self] request, socket in
            guard let page = Int(request.target.dropFirst("/page/".utf8.count)),
                page < Self.count
            else { return try socket.answer(404) }
            let version = version(page)
            let fields = [
                "Cache-Control: max-age=3600", "ETag: \"\(version)\"", "Cache-Tag: tag\(page)",
            ]
            if request["If-None-Match"] == "\"\(version)\"" {
                return try socket.answer(304, fields)
            }
            let filling = String(repeating: "x", count: 100 * page)
            return try socket.answer(200, fields, "\(version) \(filling)")
        }
    }

    /// Changes the page; returns its new version.
    func change(_ page: Int) -> Int {
        state.withLock { state in
            state.pages[page].version += 1
            return state.pages[page].version
        }
    }

    /// A purge that followed the change to `version` has a receipt.
    func purged(_ page: Int, to version: Int, isReplicated: Bool) {
        let now = monotonicNanoseconds()
        state.withLock { state in
            state.pages[page].announced = max(state.pages[page].announced, version)
            if isReplicated { state.pages[page].purges.append((version, now)) }
        }
    }

    /// Judges an answer to a request that began at `start`.
    func judge(_ page: Int, _ body: String, from machine: String, began start: UInt64) {
        let version = body.split(separator: " ").first.flatMap { Int($0) }
        state.withLock { state in
            state.answers += 1
            guard let version, version <= state.pages[page].version else {
                state.failures.append("\(machine), page \(page): \(body.prefix(40))")
                return
            }
            let due = state.pages[page].purges.first { $0.version > version }
            guard let due, due.time + allowedNanoseconds <= start,
                start >= state.caughtUp[machine] ?? 0
            else { return }
            let late = (start - due.time) / 1_000_000
            let text =
                "\(machine), page \(page): version \(version), \(late) ms after the receipt of the "
                + "purge to \(due.version)"
            state.lateAnswers.append(LateAnswer(time: due.time..<start, text: text))
        }
    }

    /// The machine does not run until `resumed`; requests to it wait in its sockets.
    func suspended(_ machine: String) { state.withLock { $0.caughtUp[machine] = .max } }

    func resumed(_ machine: String) {
        let time = monotonicNanoseconds() + catchingUpNanoseconds
        state.withLock { $0.caughtUp[machine] = time }
    }

    func failed(_ text: String) { state.withLock { $0.failures.append(text) } }

    /// Whether the body is at least of the newest version that a purge with a receipt announced.
    func isCurrent(_ page: Int, _ body: String) -> Bool {
        let version = body.split(separator: " ").first.flatMap { Int($0) } ?? -1
        return state.withLock { version >= $0.pages[page].announced }
    }
}
