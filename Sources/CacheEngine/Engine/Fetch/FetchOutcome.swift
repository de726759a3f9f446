import HTTPCaching

/// The result of one attempt of a fetch, known with the head.
struct FetchOutcome: Sendable {
    var answer: FlightAnswer
    let sharing: Sharing
    /// The body that is still to be delivered, if others may read it or it will be stored.
    var body: PendingBody?
    /// Whether the response is stored already, and may have to be awaited on disk.
    var isStored = false
    /// The place of the origin's head among all heads; the last one if another machine has stored the
    /// response, which each request judges by itself.
    var order = UInt64.max

    /// The requests that get the response.
    enum Sharing: Hashable, Sendable {
        /// Every request that waited gets it.
        case everyone
        /// Only the request that was sent gets it.
        case askerOnly
        /// Only the request that was sent gets it, because of its cookies: requests without cookies
        /// may share the response to one of them.
        case askerWithCookie
        /// Only the request that was sent gets it, and the key's mark does not change; the others may
        /// use what is stored in its place.
        case failure

        /// The requests that get a response that may not be stored.
        static func refused(_ response: ReceivedResponse) -> Sharing {
            response.request.flags.contains(.hasCookie) && response.isRefusedToThisRequestAlone
                && !Mutant.marksForCookies.isOn ? .askerWithCookie : .askerOnly
        }
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
