import CacheEngine
import CacheTestSupport
import Synchronization

/// An origin with every vice: it hangs, dribbles, breaks off, lies about length, sends fields
/// without number, answers 304 to nobody's question, fails, or does what it should.
final class CapriciousOrigin: Origin {
    fileprivate let dice: Dice
    private let ledger: Ledger
    fileprivate let clock: TestClock
    private let executor: SeededExecutor
    /// Once set, what hangs is let go and everything is answered as it should be.
    private let calm = Atomic(false)

    init(_ dice: Dice, _ ledger: Ledger, _ world: SimulatedWorld) {
        self.dice = dice
        self.ledger = ledger
        clock = world.clock
        executor = world.executor
    }

    func calmDown() { calm.store(true, ordering: .releasing) }
    fileprivate var isCalm: Bool { calm.load(ordering: .acquiring) }

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        let askedAt = ledger.tick()
        guard let path = Path.allCases.first(where: { request.url.hasSuffix($0.rawValue) }) else {
            throw CacheError(.requestInvalid, detail: request.url)
        }
        for _ in 0..<dice.below(6) { await Task.yield() }
        guard !isCalm else { return answer(request, path, askedAt) }
        switch dice.below(40) {
        case 0: try await hang()
        case 1: await hangStubbornly()
        case 2: try await clock.sleep(nanoseconds: UInt64(1 + dice.below(9)) * 500_000_000)
        case 3, 4: throw CacheError(.originFailed, detail: "The connection was refused")
        case 5: throw CancellationError()
        case 6: return .whole(status: 503, fields: ["Cache-Control": "no-store"], body: "busy")
        case 7: return .whole(status: 404, fields: ["Cache-Control": "no-store"], body: "gone")
        case 8: return OriginResponse(status: 304, fields: path.fields)
        case 9: return .whole(fields: Self.tenThousandFields, body: "flood")
        case 10: return .whole(fields: ["Content-Length": "12, 13"], body: "neither")
        case 11: return OriginResponse(status: 99)
        default: break
        }
        return answer(request, path, askedAt)
    }

    private func hang() async throws {
        for _ in 0..<4_000 where !isCalm {
            try await clock.sleep(nanoseconds: 1_000_000_000)
        }
    }

    /// Hangs on although it was cancelled.
    private func hangStubbornly() async {
        let until = clock.monotonicNanoseconds + 90_000_000_000
        while clock.monotonicNanoseconds < until, !isCalm {
            let sleep = executor.start { [clock] in
                try? await clock.sleep(nanoseconds: 1_000_000_000)
            }
            await sleep.value
        }
    }

    private static let tenThousandFields: HeaderFields = {
        var fields = HeaderFields()
        for number in 0..<10_000 { fields.append("X-\(number)", "v") }
        return fields
    }()

    // MARK: Proper answers

    private func answer(_ request: OriginRequest, _ path: Path, _ askedAt: Int) -> OriginResponse {
        let tag = "\"\(path.rawValue)\""
        if request.fields["If-None-Match"] == tag, dice.oneIn(2) {
            return OriginResponse(status: 304, fields: path.fields)
        }
        let vice = isCalm ? nil : Vice.allCases.dropFirst(dice.below(24)).first
        let content = ledger.add(
            path,
            language: request.fields["Accept-Language"] ?? "",
            caller: request.fields["X-Caller"] ?? "",
            askedAt: askedAt
        ) { vice?.mark(&$0) }
        var fields = path.fields
        if request.method == .head {
            fields["Content-Length"] = String(path.bodyBytes)
            return OriginResponse(status: 200, fields: fields)
        }
        fields["X-Serial"] = String(content.serial)
        var sent = Content.body(content.serial, path, content.language, count: path.bodyBytes)
        switch vice {
        case .closesEarly, .resets:
            fields["Content-Length"] = String(sent.count)
            sent = Array(sent.prefix(sent.count / 3))
        case .sendsMore: fields["Content-Length"] = String(sent.count / 2)
        case .endless: break
        case .saysNoLength, nil:
            if vice == nil { fields["Content-Length"] = String(sent.count) }
        }
        let body = CapriciousBody(sent, vice, self)
        return OriginResponse(status: 200, fields: fields, body: BodyStream(body))
    }
}

/// What an origin may do wrong with a body.
enum Vice: CaseIterable, Sendable {
    case closesEarly, resets, sendsMore, endless, saysNoLength

    /// Marks the content with what follows for whoever gets it.
    func mark(_ content: inout Content) {
        switch self {
        case .closesEarly, .resets, .endless:
            content.isStorable = false
            content.mayEnd = false
        case .sendsMore:
            content.isStorable = false
            content.bytes = Array(content.bytes.prefix(content.bytes.count / 2))
        case .saysNoLength: break
        }
    }
}

/// A body that arrives in pieces, with pauses, and as its vice wills.
final class CapriciousBody: BodySource {
    private let bytes: [UInt8]
    private let vice: Vice?
    private let origin: CapriciousOrigin
    private let offset = Atomic(0)

    init(_ bytes: [UInt8], _ vice: Vice?, _ origin: CapriciousOrigin) {
        self.bytes = bytes
        self.vice = vice
        self.origin = origin
    }

    func next() async throws -> ByteChunk? {
        let dice = origin.dice
        for _ in 0..<dice.below(4) { await Task.yield() }
        if dice.oneIn(30) { try await origin.clock.sleep(nanoseconds: 700_000_000) }
        try Task.checkCancellation()
        let start = offset.load(ordering: .relaxed)
        if start >= bytes.count {
            if vice == .resets { throw CacheError(.originFailed, detail: "reset") }
            guard vice == .endless else { return nil }
            if origin.isCalm { throw CacheError(.originFailed, detail: "The origin is closing") }
            return Self.more
        }
        let end = min(bytes.count, start + 1 + dice.below(bytes.count / 2))
        offset.store(end, ordering: .relaxed)
        return ByteChunk(Array(bytes[start..<end]))
    }

    /// What an endless body goes on with.
    private static let more = ByteChunk([UInt8](repeating: 7, count: 8_192))

    func cancel() {}
}
