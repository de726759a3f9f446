import CacheEngine
import CacheTestSupport
import Synchronization

/// The facts of a simulation: every answer and every removal, in the order of their moments.
///
/// The ledger is the model against which the cache's answers are judged. It contains no knowledge
/// of how a cache works.
final class Ledger: Sendable {
    private struct Removal {
        var covers: @Sendable (Path) -> Bool
        var began: Int
        var ended: Int?
    }

    /// The beginning of a request that may demand a response that comes after it.
    private struct Reload {
        let path: Path
        let began: Int
    }

    private struct State {
        /// The clock's seconds at each moment so far.
        var seconds: [Int64]
        var contents: [Content] = []
        var removals: [Removal] = []
        var reloads: [Reload] = []
        var problems: [String] = []
        var answers = 0
        var observations: [Observation] = []

        /// The last moment.
        var moment: Int { seconds.count - 1 }

        mutating func tick(_ nowSeconds: Int64) -> Int {
            seconds.append(nowSeconds)
            return moment
        }
    }

    /// The fact that a caller received an answer that later requests must receive too.
    private struct Observation {
        let path: Path
        let language: String
        let moment: Int
        /// The moment of the request for which the origin sent or confirmed that answer.
        let asOf: Int
        /// Whether the origin confirmed the answer for that request.
        let isConfirmed: Bool
        /// The caller and its answer as text.
        let text: String
    }

    private let clock: TestClock
    private let state: Mutex<State>

    init(_ clock: TestClock) {
        self.clock = clock
        state = Mutex(State(seconds: [clock.nowSeconds]))
    }

    /// Returns the next moment; no two events share one.
    func tick() -> Int {
        let now = clock.nowSeconds
        return state.withLock { $0.tick(now) }
    }

    /// Returns the moment at which a request begins.
    func begin(_ plan: RequestPlan) -> Int {
        let now = tick()
        if plan.mayReload {
            state.withLock { $0.reloads.append(Reload(path: plan.path, began: now)) }
        }
        return now
    }

    var problems: [String] { state.withLock { $0.problems } }
    var answers: Int { state.withLock { $0.answers } }

    func report(_ problem: String) { state.withLock { $0.problems.append(problem) } }

    /// Adds an answer, whose body follows from its serial.
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
                asOf: askedAt,
                arrivedAt: askedAt,
                endedAt: askedAt,
                bytes: Content.body(serial, path, language, count: path.bodyBytes)
            )
            content.isShareable = path != .personal
            change(&content)
            state.contents.append(content)
            return content
        }
    }

    /// Returns the last answer of the origin for a path that it may confirm.
    func latest(_ path: Path, language: String) -> Content? {
        state.withLock { state in
            state.contents.filter { $0.path == path && !$0.isBodiless && $0.isStorable }
                .filter { path != .varying || $0.language == language }
                .max { $0.asOf < $1.asOf }
        }
    }

    /// Records that the answer has arrived, or the beginning of its body.
    func arrive(_ serial: Int) {
        let now = tick()
        state.withLock { state in
            state.contents[serial].arrivedAt = now
            state.contents[serial].endedAt = now
        }
    }

    /// Records that more of the answer's body has arrived.
    func goOn(_ serial: Int) {
        let now = tick()
        state.withLock { $0.contents[serial].endedAt = now }
    }

    /// Records that a confirmation has arrived for the answer with that tag, requested at
    /// `askedAt`.
    func confirm(_ tag: String, _ askedAt: Int) {
        let now = tick()
        state.withLock { state in
            guard let index = state.contents.firstIndex(where: { $0.tag == tag }) else { return }
            state.contents[index].asOf = max(state.contents[index].asOf, askedAt)
            state.contents[index].arrivedAt = now
            state.contents[index].endedAt = now
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

    /// Judges one answer by the known facts.
    func judge(_ answer: Answer, to plan: RequestPlan) {
        let now = clock.nowSeconds
        state.withLock { state in
            if answer.error == nil { state.answers += 1 }
            for problem in problems(of: answer, to: plan, state) {
                state.problems.append("\(problem), asked: \(plan), got: \(answer)")
            }
            _ = state.tick(now)
            observe(answer, to: plan, &state)
        }
    }

    private func problems(of answer: Answer, to plan: RequestPlan, _ state: State) -> [String] {
        if plan.isLast, !answer.isWholeResponse { return ["no response after the last fault"] }
        if let error = answer.error { return problems(of: error, to: plan) }
        guard let status = answer.status else { return ["no answer and no error"] }
        // 504 for only-if-cached, the origin's own 503 and 404, 416 and 412 carry no content.
        guard [200, 206, 304].contains(status) else { return [] }
        guard let serial = answer.serial, state.contents.indices.contains(serial) else {
            return status == 304 || plan.isHead ? [] : ["an answer nobody gave"]
        }
        let content = state.contents[serial]
        var problems = ownership(of: content, answer, to: plan)
        problems += age(of: content, to: plan, state)
        problems += lifetime(of: content, answer, to: plan, state)
        problems += order(of: content, to: plan, state)
        if answer.isWhole, !plan.isHead, status != 304 {
            problems += body(of: content, answer, status)
        }
        return problems
    }

    private func observe(_ answer: Answer, to plan: RequestPlan, _ state: inout State) {
        guard answer.error == nil, answer.isTold, !plan.isHead, let serial = answer.serial,
            state.contents.indices.contains(serial)
        else { return }
        let content = state.contents[serial]
        // A removal since the request began keeps a fetched answer out of the store, and so does a
        // reload while its body arrives, whatever becomes of the reload.
        let isKeptOut =
            state.removals.contains { $0.covers(content.path) && $0.began > plan.startedAt }
            || state.reloads.contains { $0.path == content.path && $0.began > content.asOf }
        guard answer.isFromStore || !isKeptOut else { return }
        state.observations.append(
            Observation(
                path: content.path,
                language: content.language,
                moment: state.moment,
                asOf: content.asOf,
                isConfirmed: content.asOf != content.askedAt,
                text: "\(plan) got \(answer)"
            )
        )
    }

    /// Whether an answer is older than one that a caller had received before this request began.
    ///
    /// An answer is older if its head had arrived before the other was requested, however long its
    /// body takes. A confirmation comes without a body, and finds out nothing about a body that
    /// takes the place of the confirmed one meanwhile: then either may be the later one.
    private func order(of content: Content, to plan: RequestPlan, _ state: State) -> [String] {
        let newer = state.observations.filter { told in
            guard told.path == content.path, told.moment < plan.startedAt,
                content.path != .varying || told.language == content.language
            else { return false }
            return (told.isConfirmed ? content.endedAt : content.arrivedAt) < told.asOf
        }
        guard let newest = newer.max(by: { $0.asOf < $1.asOf }) else { return [] }
        return ["older (\(content.arrivedAt) < \(newest.asOf)) than what \(newest.text)"]
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
            problems.append("a response that must not be stored was")
        }
        return problems
    }

    private func age(of content: Content, to plan: RequestPlan, _ state: State) -> [String] {
        for removal in state.removals where removal.covers(content.path) {
            guard let ended = removal.ended, ended < plan.startedAt else { continue }
            if content.askedAt < removal.began { return ["removed content"] }
        }
        return []
    }

    /// Whether a fresh answer was older than its lifetime already when its request began.
    ///
    /// The cache counts the age from a moment before its request reaches the origin, so the ledger
    /// needs no tolerance. Policies and directives make no difference: an old answer that a policy
    /// accepts is stale, and not fresh. Content that is stored by hand is new until the store has
    /// ended.
    private func lifetime(
        of content: Content,
        _ answer: Answer,
        to plan: RequestPlan,
        _ state: State
    ) -> [String] {
        guard answer.source == .fresh else { return [] }
        var asOf = content.asOf
        if content.isByHand { asOf = max(asOf, min(content.arrivedAt, plan.startedAt)) }
        let age = max(0, state.seconds[plan.startedAt] - state.seconds[asOf])
        guard age >= content.path.lifetimeSeconds else { return [] }
        return ["fresh beyond its lifetime, at the age of \(age) s"]
    }

    private func body(of content: Content, _ answer: Answer, _ status: Int) -> [String] {
        // A part may be correct if it arrived before the body broke off.
        if !content.mayEnd, status == 200 { return ["a clean end of a broken body"] }
        var expected = content.bytes
        if status == 206 {
            guard let part = answer.range.flatMap({ content.part($0) }) else {
                return answer.isMultipart ? [] : ["a part without its place"]
            }
            expected = part
        }
        return answer.bytes == expected ? [] : ["wrong bytes"]
    }
}
