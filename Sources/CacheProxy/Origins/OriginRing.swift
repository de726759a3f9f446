/// Which of several origins is asked next, from what became of the requests before.
///
///     up ──failures in a row──▶ down ──back-off over, next request──▶ probed
///      ▲                          ▲                                    │ │
///      └──────────answered────────┼────────────────────────────────────┘ │
///                                 └──────────────failed──────────────────┘
///
/// A pure value. Nothing is sent to find out about health: the requests that come are the probes,
/// one at a time for an origin that is down, with pauses that double.
///
/// Invariants:
/// 1. `next` is below the number of members, unless there are none.
/// 2. Only a member that is down is being probed.
package struct OriginRing: Sendable {
    package static let failuresMax = 3
    package static let backOffMillisecondsMin: Int64 = 1_000
    package static let backOffMillisecondsMax: Int64 = 60_000

    package struct Member: Hashable, Sendable {
        package let address: OriginAddress
        package internal(set) var failures = 0
        /// Set while it is down: when it may be tried again.
        package internal(set) var downUntil: Int64?
        var isProbed = false
    }

    package private(set) var members: [Member]
    private var next = 0

    package init(_ addresses: [OriginAddress]) {
        members = addresses.map { Member(address: $0) }
    }

    /// The origin to ask now; nil when all of them have been tried.
    ///
    /// When all are down the one whose pause is over first is asked nevertheless: refusing without
    /// asking would keep a cache closed longer than its origins.
    package mutating func choose(
        now: Int64,
        excluding tried: Set<OriginAddress> = []
    ) -> OriginAddress? {
        var fallback: Int?
        for step in 0..<members.count {
            let index = (next + step) % members.count
            let member = members[index]
            if tried.contains(member.address) { continue }
            guard let until = member.downUntil else { return take(index) }
            if until <= now, !member.isProbed {
                members[index].isProbed = true
                return take(index)
            }
            if fallback.map({ until < members[$0].downUntil ?? 0 }) ?? true { fallback = index }
        }
        return fallback.flatMap { take($0) }
    }

    package mutating func answered(_ address: OriginAddress) {
        change(address) { member in
            member.failures = 0
            member.downUntil = nil
            member.isProbed = false
        }
    }

    package mutating func failed(_ address: OriginAddress, now: Int64) {
        change(address) { member in
            member.failures = min(member.failures + 1, Self.failuresMax + 16)
            member.isProbed = false
            guard member.failures >= Self.failuresMax else { return }
            let pause = Self.backOffMillisecondsMin << Int64(member.failures - Self.failuresMax)
            member.downUntil = now + min(pause, Self.backOffMillisecondsMax)
        }
    }

    /// The request ended without saying anything about the origin.
    package mutating func gaveUp(_ address: OriginAddress) {
        change(address) { $0.isProbed = false }
    }

    /// Other origins from here on; those that stay keep what is known about them.
    package mutating func replace(_ addresses: [OriginAddress]) {
        let known = members
        members = addresses.map { address in
            known.first { $0.address == address } ?? Member(address: address)
        }
        next = 0
    }

    private mutating func take(_ index: Int) -> OriginAddress {
        next = (index + 1) % members.count
        return members[index].address
    }

    private mutating func change(_ address: OriginAddress, _ body: (inout Member) -> Void) {
        guard let index = members.firstIndex(where: { $0.address == address }) else { return }
        body(&members[index])
    }
}
