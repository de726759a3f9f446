import CacheEngine
import CacheTestSupport
import Synchronization

/// An origin with many faults, which it shows at random.
///
/// It hangs, sends a body in small pieces, breaks off, announces a wrong length, sends ten thousand
/// fields, answers 304 to an unconditional request, fails, or answers correctly.
final class CapriciousOrigin: Origin {
    fileprivate let dice: Dice
    fileprivate let ledger: Ledger
    fileprivate let clock: TestClock
    private let executor: SeededExecutor
    /// Once set, requests stop hanging and every request is answered correctly.
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
        case 8: return OriginResponse(status: 304, fields: path.fields(tag: "\"nobody\""))
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

    /// Hangs in spite of a cancellation.
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

    // MARK: Correct answers

    private func answer(_ request: OriginRequest, _ path: Path, _ askedAt: Int) -> OriginResponse {
        let language = request.fields["Accept-Language"] ?? ""
        // The origin confirms only its last answer.
        let latest = ledger.latest(path, language: language)
        if let latest, request.fields["If-None-Match"] == latest.tag, dice.oneIn(2) {
            return OriginResponse(status: 304, fields: path.fields(tag: latest.tag))
        }
        let vice = isCalm ? nil : Vice.allCases.dropFirst(dice.below(24)).first
        let content = ledger.add(
            path,
            language: language,
            caller: request.fields["X-Caller"] ?? "",
            askedAt: askedAt
        ) { content in
            vice?.mark(&content)
            if request.method == .head { content.isBodiless = true }
        }
        var fields = path.fields(tag: content.tag)
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
        let body = CapriciousBody(sent, content.serial, vice, self)
        return OriginResponse(status: 200, fields: fields, body: BodyStream(body))
    }
}

/// Records in the ledger which answers arrive from an origin, and when.
final class RecordedOrigin: Origin {
    private let inner: any Origin
    private let ledger: Ledger

    init(_ inner: any Origin, _ ledger: Ledger) {
        self.inner = inner
        self.ledger = ledger
    }

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        let askedAt = ledger.tick()
        let response = try await inner.fetch(request)
        if response.status == 304, let tag = response.fields["ETag"] {
            ledger.confirm(tag, askedAt)
        }
        if let serial = response.fields["X-Serial"].flatMap({ Int($0) }) { ledger.arrive(serial) }
        return response
    }
}

/// A fault of an origin's body.
enum Vice: CaseIterable, Sendable {
    case closesEarly, resets, sendsMore, endless, saysNoLength

    /// Marks the content with the consequences of the fault for its readers.
    func mark(_ content: inout Content) {
        switch self {
        case .closesEarly, .resets, .endless:
            content.isStorable = false
            content.mayEnd = false
            content.isEndless = self == .endless
        case .sendsMore:
            content.isStorable = false
            content.bytes = Array(content.bytes.prefix(content.bytes.count / 2))
        case .saysNoLength: break
        }
    }
}

/// A body that arrives in pieces, with pauses, and with the fault that its vice names.
final class CapriciousBody: BodySource {
    private let bytes: [UInt8]
    private let serial: Int
    private let vice: Vice?
    private let origin: CapriciousOrigin
    private let offset = Atomic(0)

    init(_ bytes: [UInt8], _ serial: Int, _ vice: Vice?, _ origin: CapriciousOrigin) {
        self.bytes = bytes
        self.serial = serial
        self.vice = vice
        self.origin = origin
    }

    func next() async throws -> ByteChunk? {
        let dice = origin.dice
        for _ in 0..<dice.below(4) { await Task.yield() }
        if dice.oneIn(30) { try await origin.clock.sleep(nanoseconds: 700_000_000) }
        try Task.checkCancellation()
        let start = offset.load(ordering: .relaxed)
        // The cache reads the body after the head, which may have waited for its task until now.
        if start == 0 { origin.ledger.arrive(serial) } else { origin.ledger.goOn(serial) }
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

    /// The piece that an endless body repeats.
    private static let more = ByteChunk([UInt8](repeating: Content.endlessByte, count: 8_192))

    func cancel() {}
}
