internal import CacheEngine

/// What happens on one exchange, in the order in which its reader must hear of it.
enum ExchangeEvent: Sendable {
    case informational(ResponseHead)
    case head(ResponseHead)
    case chunk(ByteChunk)
    case end
    case failure(any Error)
}

/// The events of one exchange between the thread that receives and the task that reads, with a
/// bound on the bytes that wait.
///
///     open ──finish──▶ finished       the reader still gets what waits, then the end
///       └───abandon──▶ abandoned      what waits is dropped
///
/// Invariants:
/// 1. `waitingBytes` is the sum of the charges of the chunks that wait.
/// 2. Nothing enters once the exchange is finished or abandoned.
struct ExchangeState {
    enum Admission { case accepted, held, refused }

    private let windowBytesMax: Int
    private var events: [ExchangeEvent] = []
    private var firstIndex = 0
    private var waitingBytes = 0
    private var outcome: ExchangeEvent?
    /// Whether the sender was told to hold, and not yet to go on.
    private(set) var isHeld = false

    init(windowBytesMax: Int) { self.windowBytesMax = windowBytesMax }

    var isOpen: Bool { outcome == nil }

    /// Whether the next bytes may come; when not, the reader's taking says when to go on.
    mutating func admit() -> Admission {
        guard isOpen else { return .refused }
        guard waitingBytes >= windowBytesMax else { return .accepted }
        isHeld = true
        return .held
    }

    mutating func append(_ event: ExchangeEvent) {
        guard isOpen else { return }
        events.append(event)
        waitingBytes += Self.charge(event)
    }

    /// The exchange is over; the first outcome counts.
    mutating func finish(_ outcome: ExchangeEvent) {
        if self.outcome == nil { self.outcome = outcome }
    }

    /// The reader is gone.
    mutating func abandon(_ error: any Error) {
        finish(.failure(error))
        if case .end? = outcome { outcome = .failure(error) }
        events = []
        firstIndex = 0
        waitingBytes = 0
        isHeld = false
    }

    /// The next event, or nil while there is none.
    mutating func take() -> ExchangeEvent? {
        guard firstIndex < events.count else { return outcome }
        let event = events[firstIndex]
        events[firstIndex] = .end
        firstIndex += 1
        if firstIndex == events.count {
            events.removeAll(keepingCapacity: true)
            firstIndex = 0
        } else if firstIndex >= Self.compactionCount {
            events.removeFirst(firstIndex)
            firstIndex = 0
        }
        waitingBytes -= Self.charge(event)
        return event
    }

    /// Whether the sender is to go on, because half of the window is free again; true once.
    mutating func resume() -> Bool {
        guard isHeld, waitingBytes <= windowBytesMax / 2 else { return false }
        isHeld = false
        return true
    }

    private static let compactionCount = 64

    private static func charge(_ event: ExchangeEvent) -> Int {
        if case .chunk(let chunk) = event { return chunk.count + ByteChunk.overheadBytes }
        return 0
    }

    #if ENGINE_CHECKS
        func checkInvariants() {
            let charges = events[firstIndex...].map(Self.charge)
            precondition(charges.reduce(0, +) == waitingBytes)
        }
    #endif
}
