import HTTPCaching

/// The result of one attempt of a fetch, known with the head.
struct FetchOutcome: Sendable {
    var answer: FlightAnswer
    let sharing: Sharing
    /// The body that is still to be delivered, if others may read it or it will be stored.
    var body: PendingBody?

    /// The requests that get the response.
    enum Sharing: Hashable, Sendable {
        /// Every request that waited gets it.
        case everyone
        /// Only the request that was sent gets it.
        case askerOnly
        /// Only the request that was sent gets it, and the key's mark does not change.
        case failure
    }

    /// An outcome for the request that was sent only; the body is not kept.
    static func unstored(
        _ answer: OriginAnswer,
        _ sharing: Sharing,
        refusal: StoreRefusalReason? = nil
    ) -> FetchOutcome {
        FetchOutcome(
            answer: FlightAnswer(
                status: answer.status,
                fields: answer.fields,
                content: .own(answer.body.stream(count: answer.expectedCount)),
                refusal: refusal
            ),
            sharing: sharing
        )
    }
}

/// A body that every request of a flight may read.
enum SharedBody: Sendable {
    /// It arrived whole with the head.
    case present(ByteChunk)
    /// It arrives, and its readers follow it.
    case arriving(BodyChain)

    /// The announced length of the whole body.
    var expectedCount: Int? {
        switch self {
        case .present(let chunk): chunk.count
        case .arriving(let chain): chain.expectedCount
        }
    }

    /// Whether another response may be stored between its head and the end of its copy.
    var isStoredLater: Bool {
        switch self {
        case .present(let chunk): !TieredStore.isCopiedInPlace(chunk.count)
        case .arriving: true
        }
    }

    /// A stream of the whole body; `nil` if its beginning was dropped or the body broke off.
    func stream(for party: BodyChain.Party) -> BodyStream? {
        switch self {
        case .present(let chunk): BodyStream(chunk)
        case .arriving(let chain): chain.stream(for: party)
        }
    }

    /// Announces a request that is told of the body after its head; it joins or declines.
    func awaitLateReader() {
        if case .arriving(let chain) = self { chain.awaitReaders(more: 1) }
    }

    /// Declares that a request that was told of the body does not read it.
    func decline() {
        if case .arriving(let chain) = self { chain.decline() }
    }

    /// Whether the body was complete and had its readers before this request came to it.
    var isLetGo: Bool {
        if case .arriving(let chain) = self { return chain.isLetGo }
        return false
    }

    /// A stream of the bytes of `range`, which lies inside the announced length; `nil` if its
    /// beginning was dropped or is too far ahead, or the body broke off.
    func stream(_ range: Range<Int>, for party: BodyChain.Party) -> BodyStream? {
        switch self {
        case .present(let chunk): BodyStream(chunk[range])
        case .arriving(let chain): chain.stream(range, for: party)
        }
    }
}

/// A body that is still to be delivered to its readers, and into the store.
struct PendingBody: Sendable {
    let shared: SharedBody
    let origin: OriginAnswer
    /// The entry that the response becomes.
    let builder: EntryBuilder
    let storage: Storage
    /// Taken before the fetch: a removal after it keeps the response from being stored.
    let ticket: RemovalLedger.Ticket
    /// Whether the attempt was abandoned before its response arrived, so that no caller gets the
    /// response.
    var isGivenUp = false

    /// The body while it arrives; `nil` if it arrived whole with the head.
    var chain: BodyChain? {
        if case .arriving(let chain) = shared { return chain }
        return nil
    }

    enum Storage: Hashable, Sendable {
        case whole
        /// One part of the representation.
        case part(ContentRange)
        /// Other requests may read the body while it arrives, and it is not kept.
        case none
    }

    var key: RequestKey { builder.key }
    /// Whether the attempt that fetched it still holds its flight.
    var isPermitted: Bool { ticket.permit?.isValid != false }
    /// Whether a newer response of the key has been stored, or has ended what was stored.
    var isOutdated: Bool { ticket.arrival?.isOutdated == true }
}
