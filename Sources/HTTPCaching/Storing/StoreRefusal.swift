/// The reason why a response was not stored.
///
/// `code` is a stable name for logs and metrics.
public enum StoreRefusal: UInt8, CaseIterable, Hashable, Sendable {
    case methodNotStored
    case interimResponse
    case statusNeverStored
    case statusNotUnderstood
    case responseNoStore
    case requestNoStore
    case responsePrivate
    case requestAuthorized
    case varyOnEverything
    case varyTooLong
    case notFreshNorCacheable
    case neitherFreshNorValidatable
    case partialUnrequested
    case partialWithoutContentRange
    case setCookie
    case ambiguousLength
    case provokedRefusal

    public var code: String {
        switch self {
        case .methodNotStored: "method-not-stored"
        case .interimResponse: "interim-response"
        case .statusNeverStored: "status-never-stored"
        case .statusNotUnderstood: "status-not-understood"
        case .responseNoStore: "response-no-store"
        case .requestNoStore: "request-no-store"
        case .responsePrivate: "response-private"
        case .requestAuthorized: "request-authorized"
        case .varyOnEverything: "vary-on-everything"
        case .varyTooLong: "vary-too-long"
        case .notFreshNorCacheable: "not-fresh-nor-cacheable"
        case .neitherFreshNorValidatable: "neither-fresh-nor-validatable"
        case .partialUnrequested: "partial-unrequested"
        case .partialWithoutContentRange: "partial-without-content-range"
        case .setCookie: "set-cookie"
        case .ambiguousLength: "ambiguous-length"
        case .provokedRefusal: "provoked-refusal"
        }
    }
}
