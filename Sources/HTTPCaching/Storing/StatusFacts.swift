/// What the RFCs say of a status code as far as caches care.
package struct StatusFacts: Hashable, Sendable {
    package let code: Int

    package init(_ code: Int) { self.code = code }

    package var isInterim: Bool { (100...199).contains(code) }
    package var isFinal: Bool { (200...999).contains(code) }
    package var isServerError: Bool { (500...599).contains(code) }

    /// RFC 9110 §15.1: without explicit freshness, these may be given a lifetime by heuristics.
    package var isHeuristicallyCacheable: Bool {
        switch code {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// The final codes whose caching requirements are implemented here; what `must-understand`
    /// asks for (RFC 9111 §5.2.2.3).
    package var isUnderstood: Bool {
        switch code {
        case 200...206, 300...303, 305, 307, 308: true
        case 400...415, 417, 421, 422, 423, 424, 426, 451: true
        case 500...505: true
        default: false
        }
    }

    /// Codes that no cache may store (RFC 6585 §3-6), and those that answer one request's own
    /// preconditions, ranges or proxy credentials and so mean nothing to another.
    package var isNeverStored: Bool {
        switch code {
        case 428, 429, 431, 511: true
        case 304, 407, 412, 416: true
        default: false
        }
    }

    /// Refusals that a crafted request can provoke for a URL whose content is fine: they are kept
    /// only when the origin says for how long.
    package var isProvokedRefusal: Bool {
        switch code {
        case 400, 403, 413, 431, 501: true
        default: false
        }
    }

    /// Answers to what one client sent, not to what it asked for.
    ///
    /// They end a collapsed wait for that client alone; the others ask again.
    package var answersOneClientOnly: Bool {
        switch code {
        case 400, 401, 406, 407, 412, 416, 417, 421, 431: true
        default: false
        }
    }

    /// RFC 5861 §4: the answers that count as an error a stale response may stand in for.
    package var isStaleIfError: Bool {
        switch code {
        case 500, 502, 503, 504: true
        default: false
        }
    }

    package var isRedirect: Bool {
        switch code {
        case 301, 302, 303, 307, 308: true
        default: false
        }
    }
}
