import HTTPCaching

/// An origin's response, and its times.
struct OriginAnswer: Sendable {
    var status: Int
    var fields: FieldSection
    var body: OriginBody
    /// The announced length of the body.
    var expectedCount: Int?
    /// Unix seconds at which the request was sent, and at which the head arrived.
    var requestSeconds: Int64
    var responseSeconds: Int64
    /// The place of the head among all heads.
    var order: UInt64

    /// The response as the rules of storing see it.
    func received(for request: RequestFacts, _ rules: StoringRules) -> ReceivedResponse {
        ReceivedResponse(
            status: status,
            fields: fields,
            to: request,
            rules: rules,
            requestSeconds: requestSeconds,
            responseSeconds: responseSeconds
        )
    }
}

/// The result of a request that began outside a task.
enum BegunAnswer: ~Copyable, Sendable {
    case answer(OriginAnswer)
    case failure(any Error)
    /// Nothing was sent, and a task must ask.
    case unsent
}

/// An origin's body: whole, if it arrived with the head, or yet to arrive.
enum OriginBody: Sendable {
    case present(ByteChunk)
    case arriving(MeasuredBody)

    /// The body for one reader; `count` is its announced length.
    func stream(count: Int?) -> BodyStream {
        switch self {
        case .present(let chunk): BodyStream(chunk)
        case .arriving(let body): BodyStream(body, count: count)
        }
    }

    /// Cancels a body that is yet to arrive.
    func cancel() {
        if case .arriving(let body) = self { body.cancel() }
    }
}
