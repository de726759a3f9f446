/// The engine's own reasons not to store a response; those of the rules are in `StoreRefusal`, and
/// those of a store in `StoreOutcome.Reason`.
extension StoreRefusalReason {
    /// The response names more tags than an entry has room for.
    static let tooManyTags = StoreRefusalReason("too-many-tags")
    /// The resource has the most variants that may be kept, and all are recent.
    static let tooManyVariants = StoreRefusalReason("too-many-variants")
    /// The entry fits into no tier.
    static let tooLarge = StoreRefusalReason(StoreOutcome.Reason.tooLarge)
    /// The body of a 206 has another length than its Content-Range states.
    static let invalidPart = StoreRefusalReason(StoreOutcome.Reason.invalidPart)
    /// Too many bodies arrive at once, or their readers have yet to take too much.
    static let memoryShort = StoreRefusalReason("memory-short")
    /// The application's hook refused the response.
    static let hook = StoreRefusalReason("hook")
    /// The caller decides about storing, and sees only a part of the body.
    static let unproposedPart = StoreRefusalReason("unproposed-part")
    /// The request's policy stores nothing.
    static let policy = StoreRefusalReason("policy")

    init(_ reason: StoreOutcome.Reason) { self.init(reason.rawValue) }
}
