import HTTPCaching

/// A body that is still to be delivered to its readers, and into the store.
///
/// An object, because the steps that deliver it pass it on.
final class PendingBody: Sendable {
    let shared: SharedBody
    let origin: OriginAnswer
    /// The entry that the response becomes.
    let builder: EntryBuilder
    let storage: Storage
    /// The variant that the response is; `nil` if it does not vary.
    let variance: Variance?
    /// Taken before the fetch: a removal after it keeps the response from being stored.
    let ticket: RemovalLedger.Ticket

    init(
        shared: SharedBody,
        origin: consuming OriginAnswer,
        builder: consuming EntryBuilder,
        storage: Storage,
        variance: Variance?,
        ticket: consuming RemovalLedger.Ticket
    ) {
        self.shared = shared
        self.origin = origin
        self.builder = builder
        self.storage = storage
        self.variance = variance
        self.ticket = ticket
    }

    /// The body while it arrives; `nil` if it arrived whole with the head.
    var chain: BodyChain? {
        if case .arriving(let chain) = shared { return chain }
        return nil
    }

    enum Storage: Hashable, Sendable {
        case whole
        /// One part of the representation. A head that is not whole lacks fields, which only a stored
        /// part has to which this one is joined.
        case part(ContentRange, hasWholeHead: Bool)
        /// Other requests may read the body while it arrives, and it is not kept.
        case none
    }

    var key: RequestKey { builder.key }
    /// Whether the attempt that fetched it still holds its flight.
    var isPermitted: Bool { ticket.isPermitted }
    /// Whether a newer response of the key has been stored, or has ended what was stored.
    var isOutdated: Bool { ticket.arrival?.isOutdated == true }
}
