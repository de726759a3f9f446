/// Reads the log of a fleet: which question comes next, and what an answer means.
///
///     closed ──opened──▶ reading ◀──read──┐
///        ▲                  │ └───────────┘
///        │                  ▼ the place is lost
///        └──found── searching        any failure or doubt ──▶ closed
///
/// A pure value: the caller asks the questions, gives the time, and performs the actions in their
/// order. It never skips a purge in silence: it replays a gap, or it lets all entries be confirmed.
/// A purge that this machine has appended stays with it until it is read back.
///
/// Invariants:
/// 1. Every entry up to `bookmark` was applied here, or everything stored before it is stale.
/// 2. The bookmark moves only together with the actions that make 1. true.
struct LogReader: Sendable {
    /// The next question for the log's server.
    enum Question: Hashable, Sendable {
        /// The state of the log, and the purge at the position.
        case open(at: FleetPosition?)
        /// The entries after the position; `isBlocking` waits a second for the first.
        case read(after: FleetPosition, isBlocking: Bool)
        /// The newest entries.
        case search
    }

    enum Action: Hashable, Sendable {
        case apply(FleetPurge)
        case markEverythingStale(Doubt)
        /// Append purges again that the log has lost; `restored` follows.
        case restore([FleetPurge])
        /// Every entry up to the bookmark is applied.
        case keep(Bookmark)
        /// A gap was found and is being replayed.
        case replay
        /// The log was read to its end.
        case caughtUp
        /// The log was not read for longer than the permitted lag.
        case cutOff
    }

    /// Why a purge may have been missed.
    enum Doubt: String, Hashable, Sendable {
        case positionUnknown, logReplaced, logTrimmed, placeLost, entryUnreadable, cutOff
    }

    /// The rules for a machine that cannot read the log.
    struct CutOffRule: Hashable, Sendable {
        var lagNanoseconds: UInt64
        /// Whether entries must be confirmed while the log cannot be read.
        var revalidates: Bool
    }

    /// The entries that one read returns at most.
    static let readCountMax = 512
    /// The newest entries that a search compares.
    static let searchCountMax = 4_096

    private enum Phase: Hashable {
        case closed, reading, searching(LogOpening)
    }

    private(set) var bookmark: Bookmark? { didSet { raiseEpoch() } }
    /// The largest epoch that this machine has seen in this log.
    ///
    /// It stays if the bookmark goes back: a server that has lost an epoch would otherwise give later
    /// purges the places of those that it lost.
    private(set) var epoch: UInt64 = 0
    private var phase = Phase.closed
    private var memory: PurgeMemory
    /// Purges that the log has taken and this machine has not read: a failing server may lose them.
    private var unread = UnreadPurges()
    private let rule: CutOffRule
    /// The end of the log is not reached yet, so a read does not wait.
    private var isBehind = true
    /// An entry did not name the bookmark as the one before it.
    private var isChainBroken = false
    /// Reads in a row without an entry, though the log says that there is a later one.
    private var emptyReads = 0
    /// The time at which the log was last read to its end; `nil` if that is too long ago.
    private var lastContact: UInt64?
    private var isCutOff = false
    private var lastDoubt: UInt64?
    /// Whether the log has purges, or may have some, that are not applied here.
    private(set) var hasGap = false

    /// If the cache holds entries of an earlier process, the log was not read for an unknown time.
    init(
        _ bookmark: Bookmark?,
        _ rule: CutOffRule,
        now: UInt64,
        holdsEntries: Bool = false,
        memory: PurgeMemory = PurgeMemory()
    ) {
        self.bookmark = bookmark
        self.rule = rule
        self.memory = memory
        lastContact = holdsEntries && rule.revalidates ? nil : now
        raiseEpoch()
    }

    private mutating func raiseEpoch() {
        let reached = bookmark?.position.epoch ?? 0
        epoch = Mutant.forgetsEpochs.isOn ? reached : max(epoch, reached)
    }

    /// The log has taken purges of this machine; called before the next question is asked.
    ///
    /// If they are not in the log once it is read to its end, the log has lost them. The reader may
    /// have seen them before the writer had its reply.
    mutating func appended(_ purges: [FleetPurge]) {
        if Mutant.forgetsOwnPurges.isOn { return }
        for purge in purges where !memory.contains(purge.id) { unread.insert(purge) }
    }

    /// The log has taken purges that it had lost; it may lose them again before they are read.
    mutating func restored(_ purges: [FleetPurge]) { for purge in purges { unread.insert(purge) } }

    /// The question to ask now.
    var question: Question {
        guard let bookmark else { return .open(at: nil) }
        return switch phase {
        case .closed: .open(at: bookmark.position)
        case .reading: .read(after: bookmark.position, isBlocking: !isBehind)
        case .searching: .search
        }
    }

    /// The question has this answer.
    ///
    /// `holdsEntries` says whether the cache may hold entries that are older than the answer.
    mutating func received(_ reply: LogReply, now: UInt64, holdsEntries: Bool) -> [Action] {
        switch reply {
        case .opened(let opening): return opened(opening, holdsEntries: holdsEntries)
        case .found(let entries): return found(entries)
        case .read(let entries, let incarnation, let last, let found):
            // Another log has this position too: two servers were masters at once.
            if let found, let own = bookmark?.id, found != own {
                phase = .closed
                return []
            }
            return read(entries, incarnation, last, now: now)
        }
    }

    /// The question has no answer.
    mutating func failed(now: UInt64) -> [Action] {
        phase = .closed
        if let lastContact {
            guard now >= lastContact, now - lastContact >= rule.lagNanoseconds else { return [] }
        }
        var actions: [Action] = isCutOff ? [] : [.cutOff]
        isCutOff = true
        if rule.revalidates, lastDoubt.map({ now - $0 >= rule.lagNanoseconds }) ?? true {
            lastDoubt = now
            actions.append(.markEverythingStale(.cutOff))
        }
        return actions
    }
}

// MARK: - Opening

extension LogReader {
    private mutating func opened(_ opening: LogOpening, holdsEntries: Bool) -> [Action] {
        guard let mark = bookmark else {
            return beginAtTheEnd(opening, holdsEntries ? .positionUnknown : nil)
        }
        guard opening.incarnation == mark.incarnation else {
            memory = PurgeMemory()
            // The epochs of another log say nothing about this one.
            epoch = 0
            return beginAtTheEnd(opening, .logReplaced)
        }
        let isBroken = isChainBroken
        isChainBroken = false
        emptyReads = 0
        if mark.position == .zero {
            // Nothing was in the log when this machine began, so every entry is new.
            if opening.floor > .zero { return beginAtTheEnd(opening, .logTrimmed) }
            return resume(opening, mark)
        }
        if let found = opening.found, found == mark.id || Mutant.trustsThePositionAlone.isOn {
            return isBroken ? beginAtTheEnd(opening, .logTrimmed) : resume(opening, mark)
        }
        let isTrimmed =
            opening.found == nil && opening.last >= mark.position
            && opening.floor >= mark.position
        if isTrimmed { return beginAtTheEnd(opening, .logTrimmed) }
        phase = .searching(opening)
        hasGap = true
        return []
    }

    private mutating func resume(_ opening: LogOpening, _ mark: Bookmark) -> [Action] {
        phase = .reading
        isBehind = true
        hasGap = opening.last > mark.position
        return hasGap ? [.replay] : []
    }

    /// Continues after the last entry; everything stored so far is doubted for `doubt`.
    private mutating func beginAtTheEnd(_ opening: LogOpening, _ doubt: Doubt?) -> [Action] {
        let mark = Bookmark(
            incarnation: opening.incarnation,
            position: opening.last,
            id: opening.lastID
        )
        return begin(at: mark, doubt)
    }

    private mutating func begin(at mark: Bookmark, _ doubt: Doubt?) -> [Action] {
        bookmark = mark
        phase = .reading
        hasGap = false
        isBehind = true
        isChainBroken = false
        emptyReads = 0
        guard let doubt, !Mutant.skipsGaps.isOn else { return [.keep(mark)] }
        return [.markEverythingStale(doubt), .keep(mark)]
    }
}

// MARK: - A log that has lost its end

extension LogReader {
    /// Finds the newest entry that log and memory share, replays what follows it in the log, and
    /// restores what follows it in the memory.
    private mutating func found(_ entries: [LogEntry]) -> [Action] {
        guard case .searching(let opening) = phase else { return [] }
        let known = Array(memory.all)
        let knownEntries = Set(known)
        let inLog = Set(entries.compactMap { $0.purge?.id })
        var lost = known
        var newer = entries[...]
        var isFound = false
        if let place = entries.firstIndex(where: { knownEntries.contains($0) }),
            let own = known.lastIndex(of: entries[place])
        {
            isFound = true
            newer = entries[..<place]
            lost = Array(known[(own + 1)...])
        }
        var actions: [Action] = [.replay]
        let end = entries.first.map { newest in
            Bookmark(
                incarnation: opening.incarnation,
                position: newest.position,
                id: newest.purge?.id
            )
        }
        let mark =
            end
            ?? Bookmark(
                incarnation: opening.incarnation,
                position: opening.last,
                id: opening.lastID
            )
        if isFound {
            for entry in newer.reversed() { actions += take(entry) }
        } else {
            actions.append(.markEverythingStale(.placeLost))
            for entry in newer.reversed() where !isKnown(entry) { remember(entry) }
        }
        let restored = lost.compactMap(\.purge).filter { !inLog.contains($0.id) }
        if !restored.isEmpty, !Mutant.restoresNothing.isOn { actions.append(.restore(restored)) }
        return actions + begin(at: mark, nil)
    }
}

// MARK: - Reading

extension LogReader {
    private mutating func read(
        _ entries: [LogEntry],
        _ incarnation: FleetPurge.ID?,
        _ last: FleetPosition?,
        now: UInt64
    ) -> [Action] {
        guard phase == .reading, var mark = bookmark else { return [] }
        guard incarnation == mark.incarnation, let last else {
            phase = .closed
            return []
        }
        var actions: [Action] = []
        for entry in entries {
            guard entry.previous == mark.position else {
                // An entry between them is missing.
                isChainBroken = true
                phase = .closed
                break
            }
            actions += take(entry)
            mark.position = entry.position
            mark.id = entry.purge?.id
        }
        if mark != bookmark {
            bookmark = mark
            let place = Mutant.keepsBeforeApplying.isOn ? 0 : actions.count
            actions.insert(.keep(mark), at: place)
        }
        guard phase == .reading else { return actions }
        emptyReads = entries.isEmpty && last > mark.position ? emptyReads + 1 : 0
        if last < mark.position || emptyReads > 1 {
            isChainBroken = emptyReads > 1
            phase = .closed
            return actions
        }
        // A later entry was appended after the read, or it is gone: the next read tells.
        isBehind = entries.count >= Self.readCountMax || emptyReads > 0
        if !isBehind {
            lastContact = now
            isCutOff = false
            lastDoubt = nil
            hasGap = false
            let lost = unread.takeAll()
            if !lost.isEmpty { actions.append(.restore(lost)) }
            actions.append(.caughtUp)
        }
        return actions
    }

    /// The actions for one more entry.
    private mutating func take(_ entry: LogEntry) -> [Action] {
        guard let purge = entry.purge else {
            // A newer version wrote it, and it may concern any entry.
            remember(entry)
            return [.markEverythingStale(.entryUnreadable)]
        }
        defer { remember(entry) }
        return isKnown(entry) ? [] : [.apply(purge)]
    }

    private mutating func remember(_ entry: LogEntry) {
        memory.add(entry)
        if let id = entry.purge?.id { unread.remove(id) }
    }

    /// Whether the purge was read before, at this place or at another one.
    private func isKnown(_ entry: LogEntry) -> Bool {
        entry.purge.map { memory.contains($0.id) } ?? false
    }
}
