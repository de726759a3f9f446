import CacheEngine
import RESP
import RedisClient
import Synchronization

extension SharedStore {
    /// The time for which a forgotten record cannot come back.
    private static let forgottenMilliseconds = 10_000
    /// The time for which a change that Redis did not confirm hides the records of its key.
    fileprivate static let unconfirmedMilliseconds: Int64 = 60_000

    /// A publication that was added to the queue.
    fileprivate struct Queued {
        let publication: Publication
        /// The leases that it took, whose renewals end.
        let leases: [Holding]
        let isNext: Bool
        let replaced: Publication?
    }

    func publish(_ copies: [SharedCopy], onlyIf isPermitted: () -> Bool) {
        guard let first = copies.first else { return }
        let now = time.now()
        // One lock: the publications of a resource wait in the order of their marks. A removal is
        // noted before it ends anything here: one that began before the lock forbids the copy, and a
        // later one is seen when the copy's turn comes.
        let queued = state.withLock { state in
            isPermitted() ? state.queue(copies, first, at: now) : nil
        }
        guard let queued else { return counts.unpublished.count() }
        for lease in queued.leases { lease.renewal.cancel() }
        if let replaced = queued.replaced { giveUp(replaced) }
        guard queued.isNext else { return }
        let publication = queued.publication
        surroundings.start { [self] in
            var next: Publication? = publication
            while let publication = next {
                await send(publication)
                next = state.withLock { $0.publications.next(behind: publication) }
            }
        }
    }

    private func send(_ publication: Publication) async {
        // It may have waited for longer than `forget` keeps its key free, or for another log.
        let isWanted = state.withLock { state in
            state.horizon.maySend(publication.key, publication.mark, log: publication.log)
        }
        guard isWanted else { return giveUp(publication) }
        let steps = zip(publication.copies, publication.tokens).compactMap { copy, token in
            step(publication, copy, token)
        }
        guard let name = steps.first?.name else { return giveUp(publication) }
        do throws(RedisError) {
            let replies = try await client.run(steps, by: name.record)
            let isWritten = replies.allSatisfy { $0.integer == 1 }
            if isWritten { counts.published.count() } else { counts.unpublished.count() }
            state.withLock { $0.horizon.unmark(publication.mark) }
        } catch {
            giveUp(publication)
        }
    }

    private func step(
        _ publication: Publication,
        _ copy: SharedCopy,
        _ token: [UInt8]
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
        let name = publication.keys.name(of: copy.key)
        return StoreStep(.publish, name, [token, record, lifetime, mayReplace])
    }

    /// Counts a publication that Redis does not have, and releases its leases.
    private func giveUp(_ publication: Publication) {
        counts.unpublished.count()
        for (copy, token) in zip(publication.copies, publication.tokens) where !token.isEmpty {
            release(publication.keys.name(of: copy.key), token, .free)
        }
    }

    func hide(_ key: SharedKey) {
        let now = time.now()
        state.withLock { _ = $0.hide(key, isEnd: true, at: now) }
    }

    func forget(_ key: SharedKey) {
        let now = time.now()
        let mark = state.withLock { $0.hide(key, isEnd: true, at: now) }
        guard let mark, let name = name(of: key) else { return }
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

extension SharedStore.State {
    /// Adds a publication with the leases of its copies; `first` is the first copy.
    ///
    /// Returns `nil` without a log or the fleet's time: then the entry is not copied, and an older
    /// record stays hidden.
    fileprivate mutating func queue(
        _ copies: [SharedCopy],
        _ first: SharedCopy,
        at now: Int64?
    ) -> SharedStore.Queued? {
        guard let mark = hide(first.key, at: now), let log = horizon.log, let keys, let now else {
            return nil
        }
        let leases = copies.map { take($0.key) }
        let publication = Publication(
            copies: copies,
            tokens: leases.map { $0?.token ?? [] },
            mayReplace: first.mayReplace,
            mark: mark,
            log: log,
            keys: keys,
            milliseconds: now
        )
        let (isNext, replaced) = publications.add(publication)
        return SharedStore.Queued(
            publication: publication,
            leases: leases.compactMap { $0 },
            isNext: isNext,
            replaced: replaced
        )
    }

    /// Hides the older records of a key until Redis confirms a change, and those of its resource for
    /// ever if it ends.
    ///
    /// Returns `nil` if the fleet's time is not known yet: then no record is used, and none of today
    /// will be.
    fileprivate mutating func hide(
        _ key: SharedKey,
        isEnd: Bool = false,
        at now: Int64?
    ) -> PurgeHorizon.Mark? {
        guard let now else {
            hasChangedUntimed = true
            return nil
        }
        if isEnd { horizon.end(key.resource, at: now + SharedStore.deviationMilliseconds) }
        return horizon.mark(key.bytes, until: now + SharedStore.unconfirmedMilliseconds)
    }
}
