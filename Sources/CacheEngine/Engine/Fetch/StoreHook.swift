import HTTPCaching
import Platform

/// The proposal to store a response, as the application's `willStore` hook sees and changes it.
struct StoreHook {
    let services: Services
    let context: FetchContext

    /// The entry that the response becomes; `nil` if it must not be stored.
    func entry(of body: PendingBody) async -> EntryBuilder? {
        guard !context.asked.request.options.leavesStoring else { return nil }
        let hooks = services.configuration.hooks
        guard let willStore = hooks.willStore else { return body.builder }
        let proposal = StoreProposal(
            request: context.asked.request,
            status: body.origin.status,
            fields: HeaderFields(body.builder.fields),
            lifetime: .seconds(Int(body.builder.facts.freshnessLifetimeSeconds)),
            storageClass: body.builder.storageClass,
            place: body.builder.place,
            tags: body.builder.tags.tags,
            userInfo: nil
        )
        do {
            let answer = try await within(seconds: hooks.maximumWillStoreTime.seconds) {
                try await willStore(proposal)
            }
            guard var changed = answer else {
                services.recorder.refused(.hook, context.asked.request)
                return nil
            }
            guard let tags = tags(of: changed, insteadOf: body.builder.fields) else {
                services.recorder.refused(.tooManyTags, context.asked.request)
                return nil
            }
            changed.tags = tags
            keepOwnFields(of: body.builder.fields, in: &changed)
            var builder = body.builder
            builder.apply(changed)
            return builder
        } catch {
            services.recorder.hookFailed(error, context.asked.request)
            return nil
        }
    }

    /// The fields that the hook cannot change.
    ///
    /// `Vary` names the key of the variant, and a 304 without it would not be taken for a
    /// confirmation. The others describe the body, its transfer and its age, which stay as they are.
    private static let ownFields = [
        "Vary", "Content-Length", "Content-Range", "Transfer-Encoding", "Trailer", "Connection",
        "Keep-Alive", "Proxy-Connection", "TE", "Upgrade", "Age",
    ]

    /// Puts the fields back that the hook cannot change.
    private func keepOwnFields(of fields: FieldSection, in changed: inout StoreProposal) {
        for name in Self.ownFields where name == "Vary" || !Mutant.letsHooksFrame.isOn {
            let lines = fields.values(name)
            guard changed.fields.values(name) != lines else { continue }
            changed.fields.remove(name)
            for line in lines { changed.fields.append(name, line) }
        }
    }

    /// The tags that the hook left, and those that only its own fields name; `nil` if there are too
    /// many.
    private func tags(of changed: StoreProposal, insteadOf fields: FieldSection) -> [String]? {
        let rules = services.configuration.caching
        guard let named = rules.tags(in: changed.fields.section) else { return nil }
        let known = (rules.tags(in: fields) ?? []) + changed.tags
        let tags = changed.tags + TagList.tags(named, without: known)
        return TagList(tags) == nil ? nil : tags
    }

    /// Runs `work`, and stops waiting for it after `seconds`.
    private func within<Result: Sendable>(
        seconds: Double,
        _ work: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        let race = Race<Result>()
        let executor = context.asked.request.options.taskExecutor
        let working = services.supervisor.start(on: executor) {
            do { race.finish(.success(try await work())) } catch { race.finish(.failure(error)) }
        }
        let timing = services.supervisor.start(on: executor) { [clock = services.clock] in
            let limit = UInt64(nanosecondsIn: seconds)
            guard (try? await clock.sleep(nanoseconds: limit)) != nil else { return }
            let error = CacheError(
                .deadlineExceeded,
                detail: "The hook willStore did not return within \(seconds) seconds"
            )
            race.finish(.failure(error))
        }
        defer {
            working.cancel()
            timing.cancel()
        }
        return try await race.result()
    }
}
