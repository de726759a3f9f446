/// A question to the origin.
enum FetchQuestion: Sendable {
    /// The resource, as the client asks for it.
    case plain
    /// The resource, without the client's conditions and ranges.
    case whole
    /// The resource, unless it is the one stored here.
    case conditional(StoredResponse)
    /// The client's range of a resource of which parts are stored here, unless these are current.
    case part(StoredResponse)
    /// Whether the stored response is current, without the content.
    case head(StoredResponse)
    /// The rest of a range, if the origin still has the stored version.
    case rest(RestOfRange)
}
