/// What becomes of a 1xx response (RFC 9110 §15.2).
///
/// None is ever stored.
package enum InterimResponse: Hashable, Sendable {
    /// Handed on to the client before the final response: 102, 103 and codes unknown.
    case forward
    /// 100 answers the sender of `Expect: 100-continue` alone.
    case consume
    /// 101 ends HTTP on this connection; only a request that asked for it may get one.
    case switchProtocols

    /// More interim responses than this before the final one, and the origin is taken for broken.
    package static let countMax = 16

    /// Nil for a final status.
    package init?(status: Int) {
        guard StatusFacts(status).isInterim else { return nil }
        switch status {
        case 100: self = .consume
        case 101: self = .switchProtocols
        default: self = .forward
        }
    }
}
