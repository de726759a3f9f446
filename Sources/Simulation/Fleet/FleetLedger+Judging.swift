import CacheEngine
import CacheTestSupport
import Synchronization

extension FleetLedger {
    /// How much an age may lie below the true one.
    private static let toleranceSeconds: Int64 = 2

    /// Judges one answer by the known facts.
    func judge(_ answer: FleetAnswer, to question: FleetQuestion) {
        tell("\(question) got \(answer)")
        state.withLock { state in
            if answer.error == nil { state.answers += 1 }
            for problem in problems(of: answer, to: question, state) {
                state.problems.append("\(problem), asked: \(question), got: \(answer)")
            }
            _ = state.tick()
        }
    }

    private func problems(
        of answer: FleetAnswer,
        to question: FleetQuestion,
        _ state: State
    ) -> [String] {
        if let error = answer.error {
            return error is CacheError ? [] : ["an untyped error: \(error)"]
        }
        guard answer.status == 200 else { return [] }
        guard let serial = answer.serial, let asOf = answer.asOf,
            state.contents.indices.contains(serial),
            let asked = state.contents[serial].askedAt[asOf]
        else { return ["(d) a response that the origin never gave"] }
        let content = state.contents[serial]
        return identity(of: content, answer, to: question)
            + age(of: content, answer, asOf: asked)
            + ownPurges(content, asOf: asOf, answer, to: question, state)
            + logPurges(content, asOf: asOf, answer, to: question, state)
    }

    private func identity(
        of content: FleetContent,
        _ answer: FleetAnswer,
        to question: FleetQuestion
    ) -> [String] {
        var problems: [String] = []
        if content.path != question.path { problems.append("(d) another path's response") }
        if content.path == .varying, content.language != question.language {
            problems.append("(d) another variant")
        }
        if content.path == .personal, content.caller != question.name {
            problems.append("(d) another client's private response")
        }
        if content.isBroken { problems.append("(d) a clean end of a broken body") }
        if answer.bytes != content.path.body(content.serial, content.language) {
            problems.append("(d) wrong bytes")
        }
        return problems
    }

    private func age(
        of content: FleetContent,
        _ answer: FleetAnswer,
        asOf asked: Int64
    ) -> [String] {
        let (trueAge, tolerance) = (clock.nowSeconds - asked, Self.toleranceSeconds)
        guard judgesAges, trueAge > tolerance else { return [] }
        var problems: [String] = []
        if answer.source == .fresh, trueAge > Int64(content.path.maxAgeSeconds) + tolerance {
            problems.append("(d) fresh beyond its lifetime, at the age of \(trueAge)")
        }
        // The body of a response may arrive long after its head.
        if answer.source != .origin, answer.source != .collapsed,
            Int64(answer.ageSeconds ?? 0) < trueAge - tolerance
        {
            problems.append("(d) an age below the true one, \(trueAge)")
        }
        return problems
    }

    /// (a): the machine that was given a purge.
    private func ownPurges(
        _ content: FleetContent,
        asOf: Int,
        _ answer: FleetAnswer,
        to question: FleetQuestion,
        _ state: State
    ) -> [String] {
        let inherited = state.processes[question.process].inherited
        return state.ownPurges.filter { purge in
            let isOwn =
                purge.process == question.process
                || (purge.id.map { inherited.contains($0) } ?? false)
            return isOwn && purge.ended ?? .max < question.startedAt
                && purge.scope.covers(content) && asOf < purge.began
                && !purge.scope.permits(answer)
                && (judgesUnsafeMethods || !purge.isUnsafeMethod)
        }
        .prefix(1).map { "(a) purged by \($0)" }
    }

    /// (b): a machine that has read a purge of another one.
    private func logPurges(
        _ content: FleetContent,
        asOf: Int,
        _ answer: FleetAnswer,
        to question: FleetQuestion,
        _ state: State
    ) -> [String] {
        let process = state.processes[question.process]
        return state.logPurges.filter { id, purge in
            guard asOf < purge.appendedAt, purge.scope.covers(content),
                !purge.scope.permits(answer)
            else { return false }
            // Its own machine may have fetched between the purge and its place in the log.
            let sender = state.senders[id].map { state.processes[$0].machine }
            if sender == process.machine { return false }
            return process.inherited.contains(id)
                || process.applied[id] ?? .max < question.startedAt
        }
        .prefix(1).map { "(b) covered by a purge that was read, \($0.value)" }
    }
}

// MARK: - After the last fault

extension FleetLedger {
    /// Every machine responds, as no fault is left that could excuse it.
    ///
    /// (c): every purge with a receipt holds on every machine, unless the log has lost it and no
    /// living machine had read it.
    ///
    /// A purge is also lost if it was given to a log that was begun anew after a deletion, and a
    /// failover then lost that deletion: the machines know no purge of the log that is gone.
    func judgeAtTheEnd(_ answer: FleetAnswer, to question: FleetQuestion, _ redis: ModelRedis) {
        judge(answer, to: question)
        let (kept, incarnation) = (Set(redis.history.map(\.id)), redis.incarnation)
        state.withLock { state in
            // The body is whole: its bytes are judged.
            guard answer.error == nil, answer.status == 200, answer.source != .fallback else {
                state.problems.append(
                    "no response after the last fault, asked: \(question), got: \(answer)"
                )
                return
            }
            guard let serial = answer.serial, let asOf = answer.asOf,
                state.contents.indices.contains(serial)
            else { return }
            let content = state.contents[serial]
            for purge in state.ownPurges where !purge.isUnsafeMethod {
                guard let id = purge.id, purge.scope.covers(content), asOf < purge.began,
                    !purge.scope.permits(answer)
                else { continue }
                let isOfThisLog = state.logPurges[id]?.incarnation == incarnation
                let isKnown =
                    isOfThisLog
                    && state.processes.contains { $0.isAlive && $0.applied[id] != nil }
                guard kept.contains(id) || isKnown else { continue }
                state.problems.append(
                    "(c) a purge with a receipt was lost: \(purge), asked: \(question), "
                        + "got: \(answer)"
                )
            }
        }
    }
}
