/// How a 1xx response is handled (RFC 9110 §15.2).
///
/// Interim responses are never stored.
package enum InterimResponse: Hashable, Sendable {
    /// Forwarded to the client before the final response: 102, 103 and unknown codes.
    case forward
    /// Not forwarded: 100 is meant only for the sender of `Expect: 100-continue`.
    case consume
    /// 101 ends HTTP on this connection; it is valid only if the request asked for it.
    case switchProtocols

    /// The most interim responses before a final one; an origin that sends more has failed.
    package static let countMax = 16

    /// Returns `nil` if the status is final.
    package init?(status: Int) {
        guard StatusFacts(status).isInterim else { return nil }
        switch status {
        case 100: self = .consume
        case 101: self = .switchProtocols
        default: self = .forward
        }
    }
}
