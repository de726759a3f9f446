/// The reason why a request is refused unread.
///
/// The connection ends after the response: the start of the next request is unknown after a
/// malformed one.
enum RequestFault: String, Hashable, Sendable, CaseIterable, Error {
    case malformedRequestLine
    case malformedField
    case malformedLineEnd
    case malformedHost
    case malformedTarget
    case hostMissing
    case hostRepeated
    case contentLengthInvalid
    case contentLengthRepeated
    case lengthAndTransferEncoding
    case transferEncodingRepeated
    case transferEncodingInOldVersion
    case transferCodingUnknown
    case versionUnknown
    case methodTooLong
    case methodRefused
    case targetTooLong
    case lineTooLong
    case headTooLarge
    case fieldsTooMany
    case contentTooLarge
    case expectationUnknown
    case malformedChunk
    case loopDetected
    case timedOut

    /// The status of the response.
    var status: Int {
        switch self {
        case .malformedRequestLine, .malformedField, .malformedLineEnd, .malformedHost,
            .malformedTarget, .hostMissing, .hostRepeated, .contentLengthInvalid,
            .contentLengthRepeated, .lengthAndTransferEncoding, .transferEncodingRepeated,
            .transferEncodingInOldVersion, .malformedChunk:
            400
        case .methodRefused: 405
        case .timedOut: 408
        case .contentTooLarge: 413
        case .targetTooLong: 414
        case .expectationUnknown: 417
        case .lineTooLong, .headTooLarge, .fieldsTooMany: 431
        case .transferCodingUnknown, .methodTooLong: 501
        case .versionUnknown: 505
        case .loopDetected: 508
        }
    }
}
