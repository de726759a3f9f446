import HTTPCaching

/// The reason why a response of an origin is refused; the raw value is the text for people.
///
/// The connection ends: the start of the next response is unknown after a malformed one.
enum ResponseFault: String, Error, Hashable, Sendable, CaseIterable {
    case malformedStatusLine = "The response does not begin with a status line"
    case versionUnknown = "The response is not in HTTP/1.x"
    case headTooLarge = "The origin's head or trailer is too large"
    case malformedLineEnd = "A line of the origin's head begins with a CR"
    case nulInHead = "The origin's head contains a NUL"
    case firstFieldFolded = "The origin sent a space before its first field"
    case interimRefused = "The origin sent status 101 without an upgrade, or too many 1xx responses"
    case transferEncodingRepeated = "The origin sent Transfer-Encoding twice"
    case transferCodingUnknown = "The origin sent a Transfer-Encoding other than chunked"
    case transferEncodingInOldVersion = "The origin sent Transfer-Encoding in an HTTP/1.0 response"
    case contentLengthInvalid = "The origin sent an invalid Content-Length"
    case spaceBeforeFramingColon = "The origin sent a space before the colon of a framing field"
    case framingFolded = "The origin folded Content-Length or Transfer-Encoding"
    case malformedChunk = "The origin sent an invalid chunk"

    /// A description of the fault, for people to read.
    var text: String { rawValue }

    init(_ fault: MessageFraming.Fault) {
        switch fault {
        case .codingRepeated: self = .transferEncodingRepeated
        case .codingUnknown: self = .transferCodingUnknown
        case .codingInOldVersion: self = .transferEncodingInOldVersion
        case .lengthInvalid: self = .contentLengthInvalid
        case .spaceBeforeColon: self = .spaceBeforeFramingColon
        case .folded: self = .framingFolded
        }
    }
}
