import CacheEngine
import RESP
import RedisClient
import Synchronization

/// The task that reads the log: it asks the questions of a `LogReader` and performs its actions.
struct LogLoop: Sendable {
    /// The time that a read waits on the server for a purge.
    private static let blockMilliseconds = 1_000
    /// The time after which a connection without a reply is given up.
    private static let replyLimit = Duration.milliseconds(1_250)
    /// The time between two attempts.
    private static let pauseNanoseconds: UInt64 = 250_000_000

    let client: any FleetServer
    let surroundings: FleetSurroundings
    let keys: LogKeys
    let address: NodeAddress
    let writer: PurgeLogWriter
    let own: OwnPurges
    let restorer: PurgeRestorer
    let counts: FleetCounts
    let receiver: any PurgeReceiver
    let applier: PurgeApplier
    let rule: LogReader.CutOffRule
    /// The shared store, which needs the order of purges; `nil` if purges alone are shared.
    let store: SharedStore?
    let presence: FleetPresence
    let time: FleetTime

    /// Reads until the task is cancelled; `onLink` is called whenever the log was read to its end, and
    /// the shared store knows its purges or could not read them.
    func run(from bookmark: Bookmark?, onLink: @escaping @Sendable () -> Void) async {
        var desk = Desk(
            reader: LogReader(
                bookmark,
                rule,
                now: surroundings.nowNanoseconds,
                holdsEntries: receiver.mayHoldOlderEntries
            )
        )
        while !Task.isCancelled {
            desk.reader.appended(own.takeAppended())
            desk.reader.restored(restorer.takeTaken())
            desk.lastSent = store?.lastNumber ?? 0
            let actions: [LogReader.Action]
            var failure: RedisError?
            do throws(RedisError) {
                let reply = try await answer(to: desk.reader.question, at: desk.reader.bookmark)
                // Before the purges are applied: no record from before them is used from now on.
                store?.note(reply.entries)
                let holdsEntries =
                    receiver.mayHoldOlderEntries || counts.isServing.load(ordering: .acquiring)
                actions = desk.reader.received(
                    reply,
                    now: surroundings.nowNanoseconds,
                    holdsEntries: holdsEntries
                )
                // The reader may not have taken all of them: it reads those again.
                let place = desk.reader.bookmark?.position ?? .zero
                restorer.note(reply.entries.filter { $0.position <= place })
            } catch {
                if Task.isCancelled { return }
                failure = error
                actions = desk.reader.failed(now: surroundings.nowNanoseconds)
            }
            _ = counts.epoch.max(desk.reader.epoch, ordering: .relaxed)
            // Until the purges of a gap are applied, too.
            if desk.reader.hasGap { counts.isReplaying.store(true, ordering: .releasing) }
            await perform(actions, &desk, onLink)
            if !desk.reader.hasGap { counts.isReplaying.store(false, ordering: .releasing) }
            guard let failure else { continue }
            tell(failure, &desk)
            try? await surroundings.clock.sleep(nanoseconds: Self.pauseNanoseconds)
        }
    }

    // MARK: Questions

    private func answer(
        to question: LogReader.Question,
        at mark: Bookmark?
    ) async throws(RedisError) -> LogReply {
        let reply: LogReply?
        switch question {
        case .open(let position): reply = try await opening(at: position)
        case .read(let position, let isBlocking):
            reply = try await entries(after: position, isBlocking: isBlocking, at: mark)
        case .search:
            let newest = RESPCommand(
                "XREVRANGE",
                key: keys.stream,
                "+",
                "-",
                "COUNT",
                "\(LogReader.searchCountMax)"
            )
            reply = LogEntry.list(try await together([newest])[0]).map { .found($0) }
        }
        guard let reply else {
            throw RedisError(
                .misbehaved,
                detail: "The server \(address) sent an invalid reply about the fleet's log"
            )
        }
        return reply
    }

    private func opening(at position: FleetPosition?) async throws(RedisError) -> LogReply? {
        let words = [
            FleetPurge.ID.random().bytes, Array((position?.description ?? "").utf8),
        ]
        let replies = try await client.runScripts(
            by: Array(keys.meta.utf8),
            within: Self.replyLimit,
            lane: .blocking
        ) { [FleetScript.open.command(keys.both, isWhole: $0, words)] }
        if case .error(let text) = replies[0] { throw RedisError(reply: text, from: address) }
        guard let opening = LogOpening(replies[0]) else { return nil }
        writer.note(replicas: opening.replicas)
        return .opened(opening)
    }

    /// Reads on, and reports the place that this machine has reached.
    private func entries(
        after position: FleetPosition,
        isBlocking: Bool,
        at mark: Bookmark?
    ) async throws(RedisError) -> LogReply? {
        var read = RESPCommand("XREAD", key: nil, "COUNT", "\(LogReader.readCountMax)")
        if isBlocking {
            read.add("BLOCK")
            read.add(Self.blockMilliseconds)
        }
        read.add("STREAMS")
        read.add(key: keys.stream)
        read.add(position.description)
        let meta = RESPCommand("HMGET", key: keys.meta, "inc", "last")
        let place = RESPCommand(
            "XRANGE",
            key: keys.stream,
            position.description,
            position.description
        )
        // Before the read, which may wait. A server that is full refuses the report, and the log can
        // be read all the same.
        if let mark { presence.report(mark, within: Self.replyLimit) }
        let replies = try await exchange([read, meta, place, RESPCommand("TIME")])
        // Purges alone need no time, and the user of an older version may not ask for it.
        for case .error(let text) in replies.prefix(store == nil ? 3 : 4) {
            throw RedisError(reply: text, from: address)
        }
        time.note(replies[3])
        return LogReply(stream: replies[0], meta: replies[1], place: replies[2])
    }

    /// - Throws: `RedisError`, also for an error reply.
    private func together(
        _ commands: [RESPCommand],
        lane: RedisLane = .blocking
    ) async throws(RedisError) -> [RESPValue] {
        let replies = try await exchange(commands, lane: lane)
        for case .error(let text) in replies { throw RedisError(reply: text, from: address) }
        return replies
    }

    private func exchange(
        _ commands: [RESPCommand],
        lane: RedisLane = .blocking
    ) async throws(RedisError) -> [RESPValue] {
        try await client.together(
            commands,
            by: Array(keys.meta.utf8),
            within: Self.replyLimit,
            lane: lane
        )
    }
}

// MARK: - Actions

extension LogLoop {
    /// The state of the loop.
    private struct Desk {
        var reader: LogReader
        /// The number of the last purges of this machine that were sent before the question.
        var lastSent: UInt64 = 0
        /// The failure that was reported last.
        var told: RedisError.Code?
    }

    /// Performs actions in their order; purges in a row are applied together.
    private func perform(
        _ actions: [LogReader.Action],
        _ desk: inout Desk,
        _ onLink: @escaping @Sendable () -> Void
    ) async {
        var purges: [FleetPurge] = []
        for action in actions {
            if case .apply(let purge) = action {
                purges.append(purge)
            } else {
                await apply(purges, &desk)
                purges = []
                await perform(action, &desk, onLink)
            }
        }
        await apply(purges, &desk)
    }

    private func perform(
        _ action: LogReader.Action,
        _ desk: inout Desk,
        _ onLink: @escaping @Sendable () -> Void
    ) async {
        switch action {
        case .apply(let purge): await apply([purge], &desk)
        case .markEverythingStale(let doubt):
            store?.end()
            if doubt == .logReplaced {
                presence.noteReplacedLog()
                // The epochs of another log say nothing about this one.
                counts.epoch.store(desk.reader.epoch, ordering: .relaxed)
            }
            // Positions of another log may be larger than those to come.
            receiver.note(position: 0)
            await applier.doubtEverything()
        case .restore(let purges): restorer.add(purges)
        case .keep(let bookmark):
            receiver.note(position: bookmark.position.rawValue)
            applier.keep(bookmark)
        case .replay: counts.replays.count()
        case .caughtUp: await noteCaughtUp(&desk, onLink)
        case .cutOff: counts.cutOffs.count()
        }
    }

    /// The reader is at the end of the log: the machine is linked, and appends what the log lost.
    private func noteCaughtUp(
        _ desk: inout Desk,
        _ onLink: @escaping @Sendable () -> Void
    ) async {
        let isNew = !counts.isLinked.load(ordering: .relaxed)
        if let place = desk.reader.bookmark {
            receiver.note(position: place.position.rawValue)
            // Before a record of a later epoch may be used.
            store?.noteEnd(at: place.position, desk.lastSent)
            counts.readEpoch.store(place.position.epoch, ordering: .releasing)
            // A purge waits for this machine before the cache serves.
            if isNew { await presence.announce(place) }
            let beginning = beginStore(place, onLink)
            if Mutant.beginsInTheReader.isOn { await beginning?.value }
        }
        // Set before the start of the cache is told.
        counts.isReplaying.store(false, ordering: .releasing)
        counts.lastContact.store(surroundings.nowNanoseconds, ordering: .relaxed)
        if isNew {
            counts.isLinked.store(true, ordering: .relaxed)
            desk.told = nil
            receiver.report(.fleetLinked)
        }
        if store?.isBeginning != true { onLink() }
        let restoring = restorer.start()
        if Mutant.restoresInTheReader.isOn { await restoring?.value }
        if isNew { await presence.removeGone() }
    }

    /// Tells the shared store every purge that the log still has, in a task of its own: the log has
    /// about 130 pages, and the purges of other machines are applied meanwhile.
    private func beginStore(
        _ mark: Bookmark,
        _ onLink: @escaping @Sendable () -> Void
    ) -> Task<Void, Never>? {
        guard let store, let number = store.takeBeginning() else { return nil }
        return surroundings.start {
            if let entries = await purges(of: mark) {
                store.begin(
                    log: mark.incarnation.bytes,
                    floor: (entries.first?.previous ?? mark.position).rawValue,
                    entries,
                    number
                )
            }
            // If it has failed, the next read of the log tries again.
            store.endBeginning()
            onLink()
        }
    }

    /// Every entry of the log; `nil` if it cannot be read, or is not the log of the mark any more.
    ///
    /// The lane also carries this machine's first reports. A server that has become a replica refuses
    /// those, so the lane leaves it. A reply on this lane must be whole after
    /// `RedisOptions.oldestReplyLimit`, so a page is no longer than a read.
    private func purges(of mark: Bookmark) async -> [LogEntry]? {
        var pages = LogPages()
        var first = "-"
        while true {
            let page = RESPCommand(
                "XRANGE",
                key: keys.stream,
                first,
                "+",
                "COUNT",
                "\(LogReader.readCountMax)"
            )
            // Before the page: a server whose log ends before the reader's place lacks purges.
            let end = RESPCommand("HMGET", key: keys.meta, "last")
            // After the page: a log that was begun anew has another incarnation from then on.
            let incarnation = RESPCommand("HMGET", key: keys.meta, "inc")
            guard let replies = try? await together([end, page, incarnation], lane: .data),
                let last = replies[0].elements?.first?.text.flatMap({ FleetPosition($0) }),
                last >= mark.position || Mutant.believesAnyEnd.isOn,
                replies[2].elements?.first?.bytes == mark.incarnation.bytes,
                let some = LogEntry.list(replies[1])
            else { return nil }
            pages.add(some)
            guard some.count == LogReader.readCountMax, let newest = some.last else {
                return pages.entries
            }
            first = "(\(newest.position)"
        }
    }

    private func apply(_ purges: [FleetPurge], _ desk: inout Desk) async {
        let others = purges.filter { !own.contains($0.id) }
        let limit = max(rule.lagNanoseconds, Self.pauseNanoseconds)
        await applier.apply(others, lateAfter: limit) { await noteFullStorage(&desk) }
    }

    /// The log is read no further, because purges wait for the storage: the machine is cut off.
    private func noteFullStorage(_ desk: inout Desk) async {
        guard !Task.isCancelled else { return }
        let detail = "\(PurgeApplier.unconfirmedCountMax) purges wait for the storage"
        tell(RedisError(.timedOut, detail: detail), &desk)
        for action in desk.reader.failed(now: surroundings.nowNanoseconds) {
            await perform(action, &desk) {}
        }
    }

    /// Reports a failure, unless the last report had the same reason.
    private func tell(_ failure: RedisError, _ desk: inout Desk) {
        counts.isLinked.store(false, ordering: .relaxed)
        // A server that is not asked after failures has failed for another reason before. While the
        // sentinels are being asked for the master, their answer is to come.
        guard failure.code != desk.told, failure.code != .suspended || desk.told == nil,
            failure.code != .masterUnknown
        else { return }
        desk.told = failure.code
        let detail = "The fleet's log cannot be read: \(failure.detail)"
        receiver.report(.fleetFailed(CacheError(.fleetFailed, detail: detail)))
    }
}
