/// Keeps a body for the store while it arrives: in memory, or in a file once it is too large for
/// memory.
///
///     in memory ──too large──▶ on disk ──fails──▶ nowhere
///         └───────────no room───────────────────────┘
struct BodyKeeper {
    enum Place {
        case inMemory([ByteChunk])
        case onDisk(BodyWriter)
        /// The body is delivered, and not stored.
        case nowhere
    }

    private let services: Services
    private let request: CacheRequest
    private let body: PendingBody
    private let chain: BodyChain
    /// Whether a body that is too large for memory may go to a file.
    private let maySpill: Bool
    private(set) var place: Place
    private var count = 0

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
        place = builder == nil ? .nowhere : .inMemory([])
    }

    var isKeeping: Bool {
        if case .nowhere = place { return false }
        return true
    }

    /// The bytes that are kept in memory; `nil` if the body is kept elsewhere or not at all.
    var gatheredBytes: Int? {
        guard case .inMemory(let pieces) = place else { return nil }
        return pieces.reduce(0) { $0 + $1.count }
    }

    /// Keeps one more piece; a failure to keep it does not affect readers.
    mutating func keep(_ piece: ByteChunk) async {
        count += piece.count
        do {
            switch place {
            case .nowhere: break
            case .onDisk(let writer): try await writer.append(piece)
            case .inMemory(var pieces):
                // The array keeps one owner, so that appending copies nothing.
                place = .nowhere
                pieces.append(piece)
                guard count > services.tiers.gatheredBytesMax else {
                    return place = .inMemory(pieces)
                }
                if maySpill, let writer = try await spill(pieces) {
                    return place = .onDisk(writer)
                }
                services.recorder.refused(.tooLarge, request)
            }
        } catch {
            // Bytes on disk stay for readers that lag behind, until the chain is released.
            services.recorder.storageFailed(error)
            place = .nowhere
        }
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
