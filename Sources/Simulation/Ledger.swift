import CacheEngine
import CacheTestSupport
import Synchronization

/// What a simulation knows to be true: every answer ever given, every removal, in order of moments.
///
/// It is the model that the cache's answers are held against, and knows nothing of how a cache
/// works.
final class Ledger: Sendable {
    private struct Removal {
        var covers: @Sendable (Path) -> Bool
        var began: Int
        var ended: Int?
    }

    private struct State {
        var moment = 0
        var contents: [Content] = []
        var removals: [Removal] = []
        var problems: [String] = []
        var answers = 0
    }

    private let state = Mutex(State())

    /// The next moment: no two events share one.
    func tick() -> Int {
        state.withLock { state in
            state.moment += 1
            return state.moment
        }
    }

    var problems: [String] { state.withLock { $0.problems } }
    var answers: Int { state.withLock { $0.answers } }

    func report(_ problem: String) { state.withLock { $0.problems.append(problem) } }

    /// Adds an answer; its body is made from its serial.
    func add(
        _ path: Path,
        language: String,
        caller: String,
        askedAt: Int,
        _ change: (inout Content) -> Void = { _ in }
    ) -> Content {
        state.withLock { state in
            let serial = state.contents.count
            var content = Content(
                serial: serial,
                path: path,
                language: language,
                caller: caller,
                askedAt: askedAt,
                bytes: Content.body(serial, path, language, count: path.bodyBytes)
            )
            content.isShareable = path != .personal
            change(&content)
            state.contents.append(content)
            return content
        }
    }

    func beginRemoval(_ covers: @escaping @Sendable (Path) -> Bool) -> Int {
        let began = tick()
        return state.withLock { state in
            state.removals.append(Removal(covers: covers, began: began))
            return state.removals.count - 1
        }
    }

    func endRemoval(_ index: Int) {
        let ended = tick()
        state.withLock { $0.removals[index].ended = ended }
    }

    // MARK: Judging

    /// Holds one answer against what is known.
    func judge(_ answer: Answer, to plan: RequestPlan) {
        state.withLock { state in
            state.answers += 1
            for problem in problems(of: answer, to: plan, state) {
                state.problems.append("\(problem), asked: \(plan), got: \(answer)")
            }
        }
    }

    private func problems(of answer: Answer, to plan: RequestPlan, _ state: State) -> [String] {
        if let error = answer.error { return problems(of: error, to: plan) }
        guard let status = answer.status else { return ["no answer and no error"] }
        // 504 for only-if-cached, 503 and 404 of the origin's own, 416 and 412 have no content.
        guard [200, 206, 304].contains(status) else { return [] }
        guard let serial = answer.serial, state.contents.indices.contains(serial) else {
            return status == 304 || plan.isHead ? [] : ["an answer nobody gave"]
        }
        let content = state.contents[serial]
        var problems = ownership(of: content, answer, to: plan)
        problems += age(of: content, answer, to: plan, state)
        if answer.isWhole, !plan.isHead, status != 304 {
            problems += body(of: content, answer, status)
        }
        return problems
    }

    private func problems(of error: any Error, to plan: RequestPlan) -> [String] {
        if error is CacheError { return [] }
        if error is CancellationError { return plan.isCancelled ? [] : ["another's cancellation"] }
        return ["an untyped error: \(error)"]
    }

    private func ownership(
        of content: Content,
        _ answer: Answer,
        to plan: RequestPlan
    ) -> [String] {
        var problems: [String] = []
        if content.path != plan.path { problems.append("the answer of another path") }
        if content.path == .varying, content.language != plan.language {
            problems.append("another variant")
        }
        if !content.isShareable, content.caller != plan.name {
            problems.append("another caller's private answer")
        }
        if !content.isStorable, answer.isFromStore {
            problems.append("what must not be stored was")
        }
        return problems
    }

    private func age(
        of content: Content,
        _ answer: Answer,
        to plan: RequestPlan,
        _ state: State
    ) -> [String] {
        for removal in state.removals where removal.covers(content.path) {
            guard let ended = removal.ended, ended < plan.startedAt else { continue }
            if content.askedAt < removal.began { return ["removed content"] }
        }
        return []
    }

    private func body(of content: Content, _ answer: Answer, _ status: Int) -> [String] {
        // A part that had arrived before the body broke is as good as any.
        if !content.mayEnd, status == 200 { return ["a clean end of a broken body"] }
        var expected = content.bytes
        if status == 206 {
            guard let range = answer.range, range.upperBound <= expected.count else {
                return answer.isMultipart ? [] : ["a part without its place"]
            }
            expected = Array(expected[range])
        }
        return answer.bytes == expected ? [] : ["wrong bytes"]
    }
}
