import HTTPCaching

/// Looking up, storing and removing by hand.
extension HTTPCache {
    /// What is stored for the request, of any age, with no traffic and no change.
    public func storedResponse(for request: CacheRequest) async throws -> CacheResponse? {
        let (key, _) = try key(of: request)
        let selection = await select(key, request.fields.section)
        guard let stored = selection.stored else { return nil }
        let facts = RequestFacts(method: request.method.kind, fields: request.fields.section)
        let isFresh = stored.facts.isFresh(at: clock.nowSeconds)
        var info = CacheInfo(source: isFresh ? .fresh : .stale, tier: selection.tier)
        info.ageSeconds = stored.facts.ageSeconds(at: clock.nowSeconds)
        return serve(stored, to: request, facts, as: info)
    }

    /// How an answer is stored by hand.
    public struct StoreOptions: Sendable {
        /// The tags to remove it by.
        public var tags: [String] = []
        /// How long it is fresh, in seconds; nil for what its own fields say.
        public var lifetimeSeconds: Int?
        /// How long it may live, apart from HTTP's rules.
        public var storageClass = StorageClass.permanent
        /// Where it may be kept.
        public var place = StoragePlace.everywhere
        /// What to give back with every hit.
        public var userInfo: ByteChunk?

        /// A permanent entry that lives by its own fields.
        public init() {}
    }

    /// Stores an answer under the request's key, in the variant that the request selects.
    ///
    /// What HTTP would not store is stored nevertheless: this is the caller's own decision. Size
    /// limits hold. The body is read to its end.
    @discardableResult
    public func store(
        _ response: CacheResponse,
        for request: CacheRequest,
        options: StoreOptions = StoreOptions()
    ) async throws -> StoreOutcome {
        let (key, _) = try key(of: request)
        guard let tags = TagList(options.tags) else {
            throw CacheError(.requestInvalid, detail: "The tags need more room than an entry has")
        }
        let ticket = tiers.ledger.ticket()
        let limit = ByteCount(tiers.gatheredBytesMax)
        guard let body = try await Self.body(of: response, upTo: limit) else {
            tiers.remove(key)
            note(.refused(.tooLarge))
            return .refused(.tooLarge)
        }
        let policy = configuration.policy.with { $0.respectsOriginDirectives = false }
        let made = storedParts(of: response, request, storingRules(policy), options)
        var variantKey = key
        if case .selecting(let vary) = Vary.read(response.fields.section) {
            let load = Load(Demand(request, policy, key), .nothing(key), ticket)
            variantKey = await variance(vary, load).key
        }
        let blueprint = EntryBlueprint(
            key: variantKey,
            metadata: StoredResponse.metadata(
                facts: made.facts,
                fields: made.fields,
                userInfo: options.userInfo,
                ownLifetimeSeconds: options.lifetimeSeconds.map(Self.ownLifetime)
            ),
            tags: tags,
            storageClass: options.storageClass,
            place: options.place,
            createdSeconds: clock.nowSeconds
        )
        guard blueprint.isEncodable else { return .refused(.tooLarge) }
        let outcome = tiers.store(blueprint.entry(body: [body]), since: ticket)
        note(outcome)
        return outcome
    }

    private static func body(
        of response: CacheResponse,
        upTo limit: ByteCount
    ) async throws -> ByteChunk? {
        do {
            return try await response.body.collect(upTo: limit)
        } catch let error as CacheError where error.code == .bodyTooLarge {
            return nil
        }
    }

    /// A lifetime that the application gave, as entries keep it.
    static func ownLifetime(_ seconds: Int) -> UInt32 {
        UInt32(min(max(0, seconds), Int(Int32.max)))
    }

    private func storedParts(
        of response: CacheResponse,
        _ request: CacheRequest,
        _ rules: StoringRules,
        _ options: StoreOptions
    ) -> (facts: StoredFacts, fields: FieldSection) {
        let now = clock.nowSeconds
        let requestFacts = RequestFacts(method: .get, fields: request.fields.section)
        let facts = ResponseFacts(
            status: response.status,
            fields: response.fields.section,
            rules: rules,
            receivedAtSeconds: now
        )
        var lifetime = FreshnessLifetime.calculate(
            request: requestFacts,
            response: facts,
            rules: rules,
            receivedAtSeconds: now
        )
        if let seconds = options.lifetimeSeconds {
            lifetime = FreshnessLifetime(seconds: Self.ownLifetime(seconds), source: .override)
        }
        var fields = StoredFields.make(
            from: response.fields.section,
            response: facts,
            rules: rules,
            receivedAtSeconds: now
        )
        fields.remove(lowercased: "age")
        fields.remove(lowercased: "cache-status")
        let stored = StoredFacts(
            request: requestFacts,
            response: facts,
            lifetime: lifetime,
            rules: rules,
            requestTimeSeconds: now,
            responseTimeSeconds: now
        )
        return (stored, fields)
    }

    // MARK: Removing

    /// Removes what is stored for the request, all variants of it.
    ///
    /// A fetch under way goes to those who asked before, and is not stored.
    ///
    /// - Returns: Whether there was something.
    @discardableResult
    public func remove(_ request: CacheRequest) async throws -> Bool {
        let isRemoved = try await tiers.removeDurably(try key(of: request).key)
        recorder.counters.add(.removals)
        return isRemoved
    }

    /// Removes the one variant that the request selects.
    @discardableResult
    public func removeVariant(_ request: CacheRequest) async throws -> Bool {
        let selection = await select(try key(of: request).key, request.fields.section)
        guard selection.stored != nil else { return false }
        _ = try await tiers.removeDurably(selection.key)
        recorder.counters.add(.removals)
        return true
    }

    /// Removes everything that carries the tag; durable before it returns.
    @discardableResult
    public func purge(tag: String) async throws -> RemovalCount {
        try await removeAll(in: .tag(tag))
    }

    /// Removes all entries in `scope`; durable before it returns.
    @discardableResult
    public func removeAll(in scope: RemovalScope = .everything) async throws -> RemovalCount {
        let count = try await tiers.removeAll(in: scope)
        recorder.counters.add(.removals, count.entries)
        return count
    }

    /// Ends the session: entries of the session class go.
    @discardableResult
    public func endSession() async throws -> RemovalCount {
        try await removeAll(in: .storageClass(.session))
    }

    /// Makes what is stored for the request stale, so that its next use asks the origin first.
    ///
    /// - Returns: Whether there was something.
    @discardableResult
    public func makeStale(_ request: CacheRequest) async throws -> Bool {
        let key = try key(of: request).key
        tiers.outdateFetches(of: key)
        let ticket = tiers.ledger.ticket()
        let selection = await select(key, request.fields.section)
        guard let stored = selection.stored else { return false }
        var facts = stored.facts
        facts.freshnessLifetimeSeconds = 0
        let metadata = StoredResponse.metadata(
            facts: facts,
            fields: stored.fields(),
            userInfo: stored.userInfo,
            ownLifetimeSeconds: stored.ownLifetimeSeconds,
            parts: stored.parts
        )
        let blueprint = EntryBlueprint(stored.entry, metadata: metadata)
        await tiers.replace(
            stored.stored,
            by: tiers.renewed(stored.stored, as: blueprint),
            since: ticket
        )
        return true
    }

    /// Makes stale everything stored so far that carries the tag.
    ///
    /// Unlike a purge this is remembered by this process only.
    public func makeStale(tag: String) { tiers.makeStale(tag) }

    // MARK: Room

    /// Changes how much memory may be used; reached before this returns.
    public func setMemoryCapacity(_ capacity: ByteCount) {
        tiers.memory.setCapacity(capacity.bytes)
    }

    /// Changes how much disk may be used; reached before this returns.
    public func setDiskCapacity(_ capacity: ByteCount) async throws {
        try await tiers.setDiskCapacity(capacity.bytes)
    }

    /// Frees memory, as when the system runs short of it: only what is in memory goes.
    public func relieveMemoryPressure(keeping share: Double = 0) {
        tiers.memory.shrink(toShare: min(max(share, 0), 1))
    }

    /// Writes out everything stored so far.
    public func flush() async throws { try await tiers.flush() }

    // MARK: Ahead of need

    /// Loads what is not stored or no longer fresh, a few at a time, and drops the bodies.
    ///
    /// - Returns: How many of the requests are answered from the store now.
    @discardableResult
    public func prefetch(_ requests: [CacheRequest], concurrency: Int = 4) async -> Int {
        await withTaskGroup(of: Bool.self) { group in
            var waiting = requests.makeIterator()
            var loaded = 0
            func startNext() {
                guard let request = waiting.next() else { return }
                group.addTask {
                    guard let response = try? await self.respond(to: request) else { return false }
                    do {
                        for try await _ in response.body {}
                        return response.info.isStored
                    } catch { return false }
                }
            }
            for _ in 0..<max(1, concurrency) { startNext() }
            while let isLoaded = await group.next() {
                if isLoaded { loaded += 1 }
                startNext()
            }
            return loaded
        }
    }
}
