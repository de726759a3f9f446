package import CacheEngine
internal import Platform

/// An event of one exchange; the reader gets the events in order.
package enum ExchangeEvent: Sendable {
    /// Indirect, as the head is: an event is copied, and most are pieces of a body.
    indirect case informational(ResponseHead)
    indirect case head(ResponseHead)
    case chunk(ByteChunk)
    case end
    case failure(any Error)
}

/// The queued events of one exchange between the receiving thread and the reading task.
///
/// The bytes that wait are bounded.
///
///     open ──finish──▶ finished       the reader still gets the queued events, then the end
///       └───abandon──▶ abandoned      the queued events are dropped
///
/// Invariants:
/// 1. `waitingBytes` is the sum of the charges of the queued chunks.
/// 2. No event is added after the exchange is finished or abandoned.
package struct ExchangeState {
    package enum Admission { case accepted, held, refused }

    private let windowBytesMax: Int
    private var events = FIFO<ExchangeEvent>()
    private var waitingBytes = 0
    private var outcome: ExchangeEvent?
    /// Whether the sender was told to hold and not yet told to continue.
    private(set) var isHeld = false

    init(windowBytesMax: Int) { self.windowBytesMax = windowBytesMax }

    var isOpen: Bool { outcome == nil }

    /// Whether the next bytes may be delivered; after `held`, `resume()` says when to continue.
    mutating func admit() -> Admission {
        guard isOpen else { return .refused }
        if Mutant.readsPastTheWindow.isOn { return .accepted }
        guard waitingBytes >= windowBytesMax else { return .accepted }
        isHeld = true
        return .held
    }

    mutating func append(_ event: ExchangeEvent) {
        guard isOpen else { return }
        events.append(event)
        waitingBytes += Self.charge(event)
    }

    /// Ends the exchange; only the first outcome counts.
    mutating func finish(_ outcome: ExchangeEvent) {
        if self.outcome == nil { self.outcome = outcome }
    }

    /// Drops the queued events, because the reader has ended.
    mutating func abandon(_ error: any Error) {
        finish(.failure(error))
        if case .end? = outcome { outcome = .failure(error) }
        events.removeAll()
        waitingBytes = 0
        isHeld = false
    }

    /// Removes and returns the next event; `nil` if there is none.
    mutating func take() -> ExchangeEvent? {
        if Mutant.endsBeforeWhatWaits.isOn, let outcome { return outcome }
        guard let event = events.popFirst() else { return outcome }
        waitingBytes -= Self.charge(event)
        return event
    }

    /// Whether the sender must continue, because half of the window is free; `true` once per hold.
    mutating func resume() -> Bool {
        guard isHeld, waitingBytes <= windowBytesMax / 2 else { return false }
        isHeld = false
        return true
    }

    private static func charge(_ event: ExchangeEvent) -> Int {
        if case .chunk(let chunk) = event { return chunk.count + ByteChunk.overheadBytes }
        return 0
    }

    #if ENGINE_CHECKS
        func checkInvariants() {
            let charges = events.elements.map(Self.charge)
            precondition(charges.reduce(0, +) == waitingBytes)
        }
    #endif
}
