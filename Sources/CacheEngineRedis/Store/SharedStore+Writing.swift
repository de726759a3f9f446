import CacheEngine
import RESP
import RedisClient
import Synchronization

extension SharedStore {
    /// The time for which a forgotten record cannot come back.
    private static let forgottenMilliseconds = 10_000
    /// The time for which a change that Redis did not confirm hides the records of its key.
    private static let unconfirmedMilliseconds: Int64 = 60_000

    func publish(_ copies: [SharedCopy]) {
        guard let first = copies.first else { return }
        // Without a log the entry is not copied, and an older record stays hidden.
        guard let (mark, log) = hide(first.key), let log, let now = time.now() else {
            return counts.unpublished.count()
        }
        let publication = Publication(
            copies: copies,
            tokens: copies.map { take($0.key) ?? [] },
            mayReplace: first.mayReplace,
            mark: mark,
            log: log,
            milliseconds: now
        )
        let (isNext, replaced) = state.withLock { $0.publications.add(publication) }
        if let replaced {
            counts.unpublished.count()
            releaseLeases(of: replaced)
        }
        guard isNext else { return }
        surroundings.start { [self] in
            var next: Publication? = publication
            while let publication = next {
                await send(publication)
                next = state.withLock { $0.publications.next(behind: publication) }
            }
        }
    }

    private func send(_ publication: Publication) async {
        // `nil` if the log was lost meanwhile.
        let steps = zip(publication.copies, publication.tokens).compactMap { copy, token in
            name(of: copy.key).flatMap { step(publication, copy, token, $0) }
        }
        guard let name = steps.first?.name else { return counts.unpublished.count() }
        do throws(RedisError) {
            let replies = try await client.run(steps, by: name.record)
            let isWritten = replies.allSatisfy { $0.integer == 1 }
            if isWritten { counts.published.count() } else { counts.unpublished.count() }
            state.withLock { $0.horizon.unmark(publication.mark) }
        } catch {
            counts.unpublished.count()
            releaseLeases(of: publication)
        }
    }

    private func step(
        _ publication: Publication,
        _ copy: SharedCopy,
        _ token: [UInt8],
        _ name: StoreName
    ) -> StoreStep? {
        let record = SharedRecord(
            copy.entry,
            position: copy.position,
            publishedMilliseconds: publication.milliseconds,
            storedSeconds: copy.nowSeconds,
            log: publication.log
        ).encoded
        guard let record else { return nil }
        let lifetime = StoreStep.word(jittered(copy.lifetimeSeconds))
        let mayReplace = StoreStep.word(publication.mayReplace ? 1 : 0)
        return StoreStep(.publish, name, [token, record, lifetime, mayReplace])
    }

    private func releaseLeases(of publication: Publication) {
        for (copy, token) in zip(publication.copies, publication.tokens) where !token.isEmpty {
            if let name = name(of: copy.key) { release(name, token, .free) }
        }
    }

    func forget(_ key: SharedKey) {
        guard let (mark, _) = hide(key, isEnd: true), let name = name(of: key) else { return }
        _ = take(key)
        let words = [StoreStep.word(Self.forgottenMilliseconds)]
        surroundings.start { [self] in
            guard (try? await client.run([StoreStep(.forget, name, words)], by: name.record)) != nil
            else {
                return
            }
            state.withLock { $0.horizon.unmark(mark) }
        }
    }

    /// Hides the older records of a key until Redis confirms a change, and those of its resource for
    /// ever if it ends; returns the log that is known.
    ///
    /// Returns `nil` if the fleet's time is not known yet: then no record is used, and none of today
    /// will be.
    private func hide(
        _ key: SharedKey,
        isEnd: Bool = false
    ) -> (mark: PurgeHorizon.Mark, log: [UInt8]?)? {
        let now = time.now()
        return state.withLock { state in
            guard let now else {
                state.hasChangedUntimed = true
                return nil
            }
            if isEnd { state.horizon.end(key.resource, at: now + Self.deviationMilliseconds) }
            let until = now + Self.unconfirmedMilliseconds
            return (state.horizon.mark(key.bytes, until: until), state.horizon.log)
        }
    }

    func forgetEverything() {
        let now = time.now()
        state.withLock { state in
            if let now {
                state.horizon.endEverything(at: now + Self.deviationMilliseconds)
            } else {
                state.hasChangedUntimed = true
            }
        }
    }

    /// A lifetime in milliseconds, up to a twentieth less: records of one moment end one by one.
    private func jittered(_ seconds: Int) -> Int {
        let milliseconds = seconds * 1_000
        return max(1, milliseconds - Int(surroundings.random(0...UInt64(milliseconds / 20))))
    }
}
