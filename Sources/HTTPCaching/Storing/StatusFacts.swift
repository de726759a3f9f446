/// The rules of the RFCs for a status code, as far as they concern caches.
public struct StatusFacts: Hashable, Sendable {
    public let code: Int

    public init(_ code: Int) { self.code = code }

    public var isInterim: Bool { (100...199).contains(code) }
    public var isFinal: Bool { (200...999).contains(code) }
    public var isServerError: Bool { (500...599).contains(code) }

    /// May get a heuristic lifetime if no explicit one is given (RFC 9110 §15.1).
    public var isHeuristicallyCacheable: Bool {
        switch code {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Final codes whose caching requirements this module implements.
    ///
    /// `must-understand` depends on them (RFC 9111 §5.2.2.3).
    public var isUnderstood: Bool {
        switch code {
        case 200...206, 300...303, 305, 307, 308: true
        case 400...415, 417, 421, 422, 423, 424, 426, 451: true
        case 500...505: true
        default: false
        }
    }

    /// Codes that must not be stored.
    ///
    /// RFC 6585 §3-6 forbids some. The others answer the conditions, ranges, proxy credentials or
    /// early data (RFC 8470 §5.2) of one request and mean nothing to another.
    public var isNeverStored: Bool {
        switch code {
        case 428, 429, 431, 511: true
        case 304, 407, 412, 416, 425: true
        default: false
        }
    }

    /// Refusals that a crafted request can provoke for a URL with valid content.
    ///
    /// They are stored only if the origin gives a lifetime.
    public var isProvokedRefusal: Bool {
        switch code {
        case 400, 403, 405, 413, 431, 501: true
        default: false
        }
    }

    /// Errors that pass, or that one request provokes: they say nothing lasting about the resource.
    ///
    /// They are stored only for the time that the response itself, or the cache's setting for the
    /// status, gives, or for a guessed time if they are marked `public`.
    public var isPassingError: Bool {
        code >= 400 && (!isHeuristicallyCacheable || isProvokedRefusal)
    }

    /// Whether a response that is not stored ends the stored one, which it replaces.
    ///
    /// An error does not, unless the resource is gone.
    public var tellsOfTheResource: Bool {
        switch code {
        case 200...399, 404, 410: true
        default: false
        }
    }

    /// Codes that result from the message of one client, not from the resource.
    ///
    /// Such a response ends a collapsed wait only for that client; the other waiters ask again.
    public var answersOneClientOnly: Bool {
        switch code {
        case 400, 401, 406, 407, 412, 416, 417, 421, 425, 431: true
        default: false
        }
    }

    /// Codes that the message or the conduct of one client may cause, although the others' requests
    /// for the URL get another response.
    ///
    /// Nothing is concluded from them for other requests.
    public var mayConcernOneClient: Bool {
        switch code {
        case 408, 411, 414, 415, 422, 426, 428, 429: true
        default: answersOneClientOnly || isProvokedRefusal
        }
    }

    /// The errors that a stale response may replace (RFC 5861 §4).
    public var isStaleIfError: Bool {
        switch code {
        case 500, 502, 503, 504: true
        default: false
        }
    }

    public var isRedirect: Bool {
        switch code {
        case 301, 302, 303, 307, 308: true
        default: false
        }
    }
}
