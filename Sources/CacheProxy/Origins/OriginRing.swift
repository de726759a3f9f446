/// Chooses the origin of the next request from the results of earlier requests and probes.
///
///     up ──unreached, or failures in a row──▶ down ──pause over──▶ probed
///      ▲                                       ▲                    │  │
///      │                                       └────unreached───────┘  │
///      ├──────reached, and it had been out of reach────────────────────┤
///      └──answered── on trial ◀──reached, and it had failed────────────┘
///
/// A pure value. A probe only connects. An origin that failed in another way is on trial: one
/// request at a time shows whether it works again.
///
/// Invariants:
/// 1. `next` is below the number of members, unless there are none.
/// 2. Only a member that is down is being probed, and one on trial is not down.
/// 3. Each address belongs to one member.
struct OriginRing: Sendable {
    static let failuresMax = 3
    static let backOffMillisecondsMin: Int64 = 1_000
    static let backOffMillisecondsMax: Int64 = 60_000

    struct Member: Hashable, Sendable {
        let address: OriginAddress
        var failures = 0
        /// The time of the next probe, while the member is down.
        var downUntil: Int64?
        /// The number of times it went down since its last response.
        var downCount = 0
        var isProbed = false
        var isOnTrial = false
        /// The time until which the request of the trial may take; `nil` if none is under way.
        ///
        /// Its client may send slowly, and keep its content for hours.
        var trialEnd: Int64?
        /// Whether it went down although it was reachable.
        var hasFailed = false

        /// Whether it has answered its last request; no other property is set then.
        var isSound: Bool { failures == 0 && downCount == 0 }

        mutating func goDown(now: Int64) {
            let pause = backOffMillisecondsMin << Int64(min(downCount, 16))
            downUntil = now + min(pause, backOffMillisecondsMax)
            downCount += 1
            isProbed = false
            isOnTrial = false
            trialEnd = nil
        }
    }

    /// The origin of one request.
    struct Choice: Hashable, Sendable {
        let address: OriginAddress
        /// The end of the time of the trial that the request is; `nil` for any other request.
        var trialEnd: Int64?
    }

    private(set) var members: [Member]
    private var next = 0

    init(_ addresses: [OriginAddress]) {
        members = addresses.map { Member(address: $0) }
    }

    /// The origin to ask now; `nil` if all of them were tried.
    ///
    /// If all are down, the member with the next probe is asked nevertheless: without that, the
    /// proxy would fail requests for longer than its origins do.
    mutating func choose(
        excluding tried: Set<OriginAddress> = [],
        now: Int64
    ) -> Choice? {
        var fallback: Int?
        for step in 0..<members.count {
            let index = (next + step) % members.count
            if !tried.isEmpty, tried.contains(members[index].address) { continue }
            let isFree = now >= members[index].trialEnd ?? .min || Mutant.probesManyAtOnce.isOn
            if members[index].downUntil == nil, isFree {
                guard members[index].isOnTrial else { return take(index) }
                let trialEnd = now + Self.backOffMillisecondsMax
                members[index].trialEnd = trialEnd
                return take(index, trialEnd: trialEnd)
            }
            let until = members[index].downUntil ?? .min
            if fallback.map({ until < members[$0].downUntil ?? .min }) ?? true { fallback = index }
        }
        return fallback.flatMap { take($0) }
    }

    /// The origin answered; returns whether it had been down.
    @discardableResult
    mutating func answered(_ address: OriginAddress) -> Bool {
        var wasDown = false
        change(address) { member in
            guard !member.isSound else { return }
            wasDown = member.downCount > 0
            member = Member(address: address)
        }
        return wasDown
    }

    /// The origin was reached, and its response was an error of the exchange; returns whether it
    /// goes down, for the first time since its last answer.
    @discardableResult
    mutating func failed(_ address: OriginAddress, now: Int64) -> Bool {
        countingDowns(of: address) { member in
            // A request that was sent before it went down tells nothing new.
            guard member.downUntil == nil else { return }
            member.failures = min(member.failures + 1, Self.failuresMax)
            guard member.failures >= Self.failuresMax else { return }
            member.hasFailed = true
            member.goDown(now: now)
        }
    }

    /// No connection could be made; returns whether the origin goes down, for the first time since
    /// its last answer.
    @discardableResult
    mutating func unreached(_ address: OriginAddress, now: Int64) -> Bool {
        countingDowns(of: address) { member in
            if member.downUntil == nil { member.goDown(now: now) }
        }
    }

    /// The request ended without a result for the origin.
    ///
    /// It may be older than a trial that is under way, and ends none but its own.
    mutating func gaveUp(_ choice: Choice) {
        change(choice.address) { member in
            let isItsTrial = member.trialEnd == choice.trialEnd
            if isItsTrial || Mutant.endsAnyTrial.isOn { member.trialEnd = nil }
        }
    }

    /// Replaces the origins; those that stay keep their state.
    mutating func replace(_ addresses: [OriginAddress]) {
        let known = members
        members = addresses.map { address in
            known.first { $0.address == address } ?? Member(address: address)
        }
        next = 0
    }

    // MARK: Probes

    /// The time of the next probe; `nil` while no member is down.
    var nextProbe: Int64? {
        members.compactMap { $0.isProbed ? nil : $0.downUntil }.min()
    }

    /// Returns the origins to probe now; one of `probeConnected`, `probeFailed` and `probeGaveUp` ends
    /// each probe.
    mutating func takeProbes(now: Int64) -> [OriginAddress] {
        var due: [OriginAddress] = []
        for index in members.indices where !members[index].isProbed {
            guard let until = members[index].downUntil, until <= now else { continue }
            members[index].isProbed = true
            due.append(members[index].address)
        }
        return due
    }

    /// A probe connected.
    mutating func probeConnected(_ address: OriginAddress) {
        change(address) { member in
            guard member.isProbed else { return }
            member.isProbed = false
            member.downUntil = nil
            member.isOnTrial = member.hasFailed
            // One more failure takes it down again.
            member.failures = member.hasFailed ? Self.failuresMax - 1 : 0
        }
    }

    /// A probe could not connect.
    ///
    /// It tells nothing if a request that was sent before has been answered meanwhile.
    mutating func probeFailed(_ address: OriginAddress, now: Int64) {
        change(address) { member in
            if member.isProbed { member.goDown(now: now) }
        }
    }

    /// A probe ended without a result for the origin; the next one follows after the shortest pause.
    mutating func probeGaveUp(_ address: OriginAddress, now: Int64) {
        change(address) { member in
            guard member.isProbed else { return }
            member.isProbed = false
            member.downUntil = now + Self.backOffMillisecondsMin
        }
    }

    private mutating func take(_ index: Int, trialEnd: Int64? = nil) -> Choice {
        next = (index + 1) % members.count
        return Choice(address: members[index].address, trialEnd: trialEnd)
    }

    /// Changes the member; returns whether that took it down for the first time.
    private mutating func countingDowns(
        of address: OriginAddress,
        _ body: (inout Member) -> Void
    ) -> Bool {
        var goesDown = false
        change(address) { member in
            let before = member.downCount
            body(&member)
            goesDown = before == 0 && member.downCount > 0
        }
        return goesDown
    }

    private mutating func change(_ address: OriginAddress, _ body: (inout Member) -> Void) {
        guard let index = members.firstIndex(where: { $0.address == address }) else { return }
        body(&members[index])
    }
}
