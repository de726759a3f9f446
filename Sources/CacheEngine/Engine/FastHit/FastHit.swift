import HTTPCaching

/// The synchronous path: a response from memory, or from a file in the page cache, which needs no
/// further work.
///
/// A plain hit in memory enters no actor, waits for no lock and allocates nothing. The attributes
/// in this folder and in its callers keep it so. Two hits lock their shard for a moment: one on a
/// thread without a `ReaderGate`, and one on disk.
struct FastHit {
    private let services: Services

    @inline(__always)
    init(_ services: Services) { self.services = services }

    /// The places where a response is looked for.
    enum Reach {
        case memory
        /// Also behind the memory, as far as that is read without waiting.
        case pageCache
    }

    /// The response if it needs no work; `nil` if the request would wait.
    func response(
        to request: CacheRequest,
        _ policy: CachePolicy?,
        reach: Reach = .memory
    ) -> CacheResponse? {
        let terms = services.terms(of: request, policy)
        // Before the look-up, so that the processor fetches fields and key at the same time.
        let isPlain = terms.servesFresh && request.hitCondition == .none
        return response(to: request, terms, isPlain: isPlain, reach)
    }

    /// `isPlain` says whether the request is, under these terms.
    ///
    /// Not inlined: its copies would occupy the frame of a caller that waits.
    @inline(never)
    private func response(
        to request: CacheRequest,
        _ terms: ReuseTerms,
        isPlain: Bool,
        _ reach: Reach
    ) -> CacheResponse? {
        guard terms.reads, request.isAnsweredByKey else { return nil }
        let nowSeconds = services.clock.nowSeconds
        guard let entry = entryInMemory(for: request) else {
            guard reach == .pageCache else { return nil }
            return responseBehindMemory(to: request, terms, isPlain: isPlain, nowSeconds)
        }
        if isPlain, !services.tiers.mayBeMarkedStale(entry),
            let hit = PlainHit(entry, nowSeconds: nowSeconds)
        {
            return response(hit, of: entry, to: request)
        }
        return reuse(entry, for: request, terms, nowSeconds)
    }

    /// The largest body that is read in the entry, inside the readers' gate.
    ///
    /// Copying it takes a few microseconds. A writer that releases entries waits for that long.
    static let lentBodyBytesMax = 64 << 10

    /// Calls `read` with a plain hit of up to `bodyBytesMax`, or returns the response that
    /// `response(to:)` would return.
    ///
    /// The hit is read in its entry, which is neither retained nor released: threads that hit one
    /// key then write to no common cache line. Every other response holds its entry.
    @inline(never)
    func lend(
        to request: CacheRequest,
        _ policy: CachePolicy?,
        bodyBytesMax: Int = lentBodyBytesMax,
        reach: Reach = .memory,
        _ read: (borrowing BorrowedResponse) -> Void
    ) -> ImmediateAnswer {
        let terms = services.terms(of: request, policy)
        let condition = request.hitCondition
        guard terms.servesFresh, request.isAnsweredByKey, condition != .other else {
            return ImmediateAnswer(response(to: request, terms, isPlain: false, reach))
        }
        let nowSeconds = services.clock.nowSeconds
        // Not the request, which the closure would copy for each hit.
        let conditions = condition == .ifNoneMatch ? request.fields.section : nil
        // As in `entryInMemory`, the closure must not retain the services.
        let lent = Unmanaged.passUnretained(services)
        var retained: Unmanaged<ByteStorage>?
        var (status, bodyCount) = (0, 0)
        let isFound = withEntryInMemory(for: request) { entry in
            guard !lent._withUnsafeGuaranteedRef({ $0.tiers.mayBeMarkedStale(entry) }),
                let hit = Self.hit(entry, conditions, nowSeconds),
                hit.body.count <= bodyBytesMax
            else {
                retained = .passRetained(entry.storage)
                return
            }
            (status, bodyCount) = (hit.status, hit.body.count)
            read(BorrowedResponse(hit, of: entry, lent))
        }
        guard isFound else {
            guard reach == .pageCache else { return .none }
            return ImmediateAnswer(
                responseBehindMemory(to: request, terms, isPlain: condition == .none, nowSeconds)
            )
        }
        guard let retained else {
            // Counted outside the gate: the application's hook may take its time.
            services.recorder.answered(
                .fresh,
                .init(request, status: status, .fresh, bodyCount: bodyCount)
            )
            return .read
        }
        let entry = Entry(unchecked: retained.takeRetainedValue())
        guard !services.tiers.mayBeMarkedStale(entry),
            let hit = Self.hit(entry, conditions, nowSeconds)
        else {
            return ImmediateAnswer(reuse(entry, for: request, terms, nowSeconds))
        }
        return .response(response(hit, of: entry, to: request))
    }

    /// The plain hit on `entry`; `conditions` are the fields of a request with `If-None-Match`.
    @inline(__always)
    private static func hit(
        _ entry: borrowing Entry,
        _ conditions: FieldSection?,
        _ nowSeconds: Int64
    ) -> PlainHit? {
        guard var hit = PlainHit(entry, nowSeconds: nowSeconds) else { return nil }
        if let conditions { hit.evaluateIfNoneMatch(of: conditions, on: entry) }
        return hit
    }

    @inline(__always)
    private func response(
        _ hit: PlainHit,
        of entry: Entry,
        to request: CacheRequest
    ) -> CacheResponse {
        if services.recorder.hasHook { return reportedResponse(hit, of: entry, to: request) }
        services.recorder.count(.fresh)
        return ResponseBuilder(services).response(hit, of: entry)
    }

    /// A response that a hook is told of.
    ///
    /// Not inlined: the report holds the response, and the usual hit would pay for that.
    @inline(never)
    private func reportedResponse(
        _ hit: PlainHit,
        of entry: Entry,
        to request: CacheRequest
    ) -> CacheResponse {
        let response = ResponseBuilder(services).response(hit, of: entry)
        services.recorder.answered(.fresh, .init(request, response))
        return response
    }

    /// Calls `read` with the entry under the key of the request, inside the readers' gate.
    @inline(__always)
    private func withEntryInMemory(
        for request: CacheRequest,
        _ read: (Entry) -> Void
    ) -> Bool {
        let hasher = services.tiers.hasher
        let memory = Unmanaged.passUnretained(services.tiers.memory)
        let isFound = services.withKey(of: request) { key, _ in
            memory._withUnsafeGuaranteedRef {
                $0.withEntry(for: hasher.hash(key), key: key, read)
            }
        }
        return isFound == true
    }

    /// The entry under the key of the request.
    ///
    /// The closure captures numbers only: otherwise it would retain the services, whose count all
    /// threads share, and copy the request; and an optional of an optional would retain the entry
    /// once more. The memory outlives the call, as the services hold it unchanged; the entry is
    /// returned retained once, and that reference is taken over once.
    @inline(__always)
    private func entryInMemory(for request: CacheRequest) -> Entry? {
        let hasher = services.tiers.hasher
        let memory = Unmanaged.passUnretained(services.tiers.memory)
        let found = services.withKey(of: request) { key, _ in
            memory._withUnsafeGuaranteedRef {
                $0.retainedEntry(for: hasher.hash(key), key: key)
            }
        }
        guard case .some(.some(let storage)) = found else { return nil }
        return Entry(unchecked: storage.takeRetainedValue())
    }

    /// The response from `primary`, or from the variant that the request selects by it, if that
    /// leaves no work to do.
    @inline(never)
    private func reuse(
        _ primary: Entry,
        for request: CacheRequest,
        _ terms: ReuseTerms,
        _ nowSeconds: Int64
    ) -> CacheResponse? {
        let stored =
            VariantIndex.isIndex(primary)
            ? Lookup(services).variantInMemory(primary, request)
            : StoredResponse(StoredEntry(primary))
        guard let stored else { return nil }
        return reuse(stored, in: .memory, for: request, terms, nowSeconds)
    }

    /// The response from behind the memory, if it is read there without waiting and leaves no work.
    ///
    /// `isPlain` says whether the request is, under these terms.
    @inline(never)
    private func responseBehindMemory(
        to request: CacheRequest,
        _ terms: ReuseTerms,
        isPlain: Bool,
        _ nowSeconds: Int64
    ) -> CacheResponse? {
        // A response that may be validated or refreshed ahead is read once, by the longer way.
        guard services.tiers.readsBehindAtOnce, terms.servesFresh else { return nil }
        let tiers = services.tiers
        let ticket = tiers.ledger.ticket()
        // Not the result of the closure: an optional of an optional is copied twice.
        var found: BackingEntry?
        _ = services.withKey(of: request) { key, _ in found = tiers.findBehindAtOnce(key) }
        guard let found,
            let response = self.response(from: found, to: request, terms, isPlain, nowSeconds)
        else { return nil }
        found.countUse()
        tiers.use(found, since: ticket)
        return response
    }

    private func response(
        from found: BackingEntry,
        to request: CacheRequest,
        _ terms: ReuseTerms,
        _ isPlain: Bool,
        _ nowSeconds: Int64
    ) -> CacheResponse? {
        let entry = found.entry.entry
        assert(found.entry.detachedBody == nil, "the body lies in the entry")
        if isPlain, !services.tiers.mayBeMarkedStale(entry) || Mutant.overlooksMarksOnDisk.isOn,
            let hit = PlainHit(entry, in: .disk, nowSeconds: nowSeconds)
        {
            return response(hit, of: entry, to: request)
        }
        guard let stored = StoredResponse(found.entry) else { return nil }
        return reuse(stored, in: .disk, for: request, terms, nowSeconds)
    }

    private func reuse(
        _ stored: StoredResponse,
        in tier: CacheInfo.Tier,
        for request: CacheRequest,
        _ terms: ReuseTerms,
        _ nowSeconds: Int64
    ) -> CacheResponse? {
        let facts = services.configuration.caching.facts(of: request)
        let step = ReuseStep(
            stored,
            for: facts,
            terms,
            services.tiers,
            refreshAheadShare: services.configuration.caching.refreshAheadShare,
            nowSeconds: nowSeconds
        )
        guard case .respond(let source, let ageSeconds, isRefreshed: false) = step,
            let response = ResponseBuilder(services).response(
                stored,
                to: request,
                facts,
                CacheInfo(source: source, tier: tier, ageSeconds: ageSeconds)
            )
        else { return nil }
        services.recorder.answered(source, .init(request, response))
        return response
    }
}

/// An answer to a request, given without waiting.
package enum ImmediateAnswer {
    /// The response was read where it is stored.
    case read
    case response(CacheResponse)
    /// The request would wait.
    case none

    init(_ response: CacheResponse?) {
        self = response.map { .response($0) } ?? .none
    }
}
