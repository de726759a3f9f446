/// Keeps a body for the store while it arrives: in memory, or in a file once it is too large for
/// memory, or memory is short.
///
///     in memory ──too large, or memory is short──▶ on disk ──fails──▶ nowhere
///         └────────no room, or held up for too long──────────────────────┘
struct BodyKeeper {
    enum Place {
        case inMemory([ByteChunk])
        case onDisk(BodyWriter)
    }

    private let services: Services
    private let request: CacheRequest
    private let body: PendingBody
    private let chain: BodyChain
    /// Whether a body that is too large for memory may go to a file.
    private var maySpill: Bool
    /// `nil` if the body is delivered, and not stored.
    private(set) var place: Place?
    /// Whether a whole body is kept nowhere because it is too large; a part says nothing of the whole.
    private(set) var isTooLarge = false
    private var count = 0
    /// The bytes that the budget counts for the body.
    private var gatheredBytes = 0

    /// `builder` is `nil` for a body that must not be stored.
    init(
        _ services: Services,
        _ request: CacheRequest,
        _ body: PendingBody,
        _ chain: BodyChain,
        _ builder: EntryBuilder?
    ) {
        self.services = services
        self.request = request
        self.body = body
        self.chain = chain
        maySpill = builder?.place == .everywhere && body.storage == .whole
        place = builder == nil ? nil : .inMemory([])
    }

    var isKeeping: Bool { place != nil }

    var isOnDisk: Bool {
        if case .onDisk = place { return true }
        return false
    }

    /// The bytes that are kept in memory; `nil` if the body is kept elsewhere or not at all.
    var bytesInMemory: Int? {
        guard case .inMemory(let pieces) = place else { return nil }
        return pieces.byteCount
    }

    /// Keeps one more piece; a failure to keep it does not affect readers.
    ///
    /// `joined`, if given, is the piece before and this one in one chunk.
    mutating func keep(_ piece: ByteChunk, joined: ByteChunk?) async {
        count += piece.count
        do {
            switch place {
            case nil: break
            case .onDisk(let writer): try await writer.append(piece)
            case .inMemory(var pieces):
                // The array keeps one owner, so that appending copies nothing.
                place = nil
                if !pieces.joinLast(with: piece, as: joined) { pieces.append(piece) }
                gatheredBytes += piece.count
                services.bodies.gather(piece.count)
                guard let refusal else { return place = .inMemory(pieces) }
                // Before the file is written: these bytes are on their way out of the memory.
                release()
                let isForAFile =
                    refusal == .tooLarge || isLargeForDisk || body.origin.expectedCount == nil
                if maySpill, isForAFile, let writer = try await spill(pieces) {
                    return place = .onDisk(writer)
                }
                isTooLarge = refusal == .tooLarge && body.storage == .whole
                services.recorder.refused(refusal, request)
            }
        } catch {
            // Bytes on disk stay for readers that lag behind, until the chain is released.
            place = nil
            let reason = StoreRefusalReason(services.refusal(after: error))
            // As a body whose length is known in advance.
            isTooLarge = reason == .tooLarge
            services.recorder.refused(reason, request)
        }
    }

    /// The reason why the body must leave the memory.
    private var refusal: StoreRefusalReason? {
        if count > services.tiers.gatheredBytesMax { return .tooLarge }
        guard count > services.bodies.leastBytes, services.bodies.shortage.isForStore,
            !Mutant.gathersWithoutLimit.isOn
        else { return nil }
        return .memoryShort
    }

    /// Whether the body has a file of its own on disk, also if memory has room for it.
    private var isLargeForDisk: Bool {
        max(count, body.origin.expectedCount ?? 0) > services.tiers.backing.gatheredBytesMax
    }

    /// Moves the body from memory to a file, if it would have one of its own on disk anyway.
    mutating func moveToFile() async {
        guard case .inMemory(let pieces) = place, maySpill, isLargeForDisk else { return }
        do {
            guard let writer = try await spill(pieces) else { return }
            place = .onDisk(writer)
            release()
        } catch {
            // The body stays in memory, which has room for it.
            services.note(storageError: error)
            maySpill = false
        }
    }

    /// Stops keeping the body, because its readers have held it up for too long.
    mutating func giveUp() {
        place = nil
        release()
        services.recorder.refused(.memoryShort, request)
    }

    /// Tells the budget that the body is gathered no longer; does nothing the second time.
    mutating func release() {
        services.bodies.releaseGathered(gatheredBytes)
        gatheredBytes = 0
    }

    /// Moves the body from memory to a file, from which readers that lag behind read it.
    private func spill(_ pieces: [ByteChunk]) async throws -> BodyWriter? {
        let writer = try await services.tiers.backing.openBody(
            body.key.hash,
            expectedCount: body.origin.expectedCount
        )
        guard let writer else { return nil }
        for piece in pieces { try await writer.append(piece) }
        chain.spill { range in try await writer.read(range) }
        return writer
    }

    /// Abandons the file of a body that broke off.
    func abandon() async {
        if case .onDisk(let writer) = place { await writer.abandon() }
    }
}
