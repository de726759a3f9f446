internal import CacheEngine

/// The head of an answer, and what it says about the body that follows.
struct ResponseHead: Sendable {
    var status: Int
    var fields: HeaderFields
    /// The announced length of the body, where there is one and it frames the body.
    var contentBytes: Int?
    /// Whether a body follows at all.
    var hasContent: Bool
}
