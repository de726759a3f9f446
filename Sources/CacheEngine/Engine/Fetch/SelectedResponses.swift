/// The stored responses that a request selects, by each set of selecting fields of its resource.
struct SelectedResponses {
    let services: Services
    let context: FetchContext

    /// Removes by `remove` the response under `key`, and, if that is a variant, the others: by another
    /// set the request would find an older one.
    nonisolated(nonsending) func end(
        _ key: RequestKey,
        _ remove: nonisolated(nonsending) (RequestKey) async -> Void
    ) async {
        await remove(key)
        guard key.resource != nil, !Mutant.endsOneSetOnly.isOn else { return }
        let fields = context.asked.request.fields.section
        for other in await Lookup(services).candidates(for: context.key, fields)
        where other != key {
            // A removal also keeps fetches under way from being stored.
            if await services.tiers.mayHold(other) { await remove(other) }
        }
    }
}
