import CacheEngine
import CacheTestSupport
import Synchronization

/// The origin of a simulated fleet: every response is another one, and now and then it is late,
/// broken or missing.
final class FleetOrigin: Origin {
    private let dice: Dice
    private let ledger: FleetLedger
    private let clock: TestClock

    init(_ dice: Dice, _ ledger: FleetLedger, _ clock: TestClock) {
        self.dice = dice
        self.ledger = ledger
        self.clock = clock
    }

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        let moment = ledger.tick()
        let seconds = clock.nowSeconds
        guard let path = FleetPath.allCases.first(where: { request.url.hasSuffix($0.rawValue) })
        else { throw CacheError(.requestInvalid, detail: request.url) }
        for _ in 0..<dice.below(5) { await Task.yield() }
        if !ledger.isCalm {
            switch dice.below(24) {
            case 0...3: try await clock.sleep(nanoseconds: UInt64(dice.below(400)) * 1_000_000)
            case 4: try await clock.sleep(nanoseconds: UInt64(dice.below(4_000)) * 1_000_000)
            case 5: throw CacheError(.originFailed, detail: "The connection was refused")
            case 6: return .whole(status: 503, fields: ["Cache-Control": "no-store"], body: "busy")
            default: break
            }
        }
        if request.method == .post {
            return .whole(status: 200, fields: ["Cache-Control": "no-store"], body: "done")
        }
        let language = path == .varying ? request.fields["Accept-Language"] ?? "" : ""
        if let latest = ledger.latest(path, language),
            request.fields["If-None-Match"] == latest.tag, dice.oneIn(2)
        {
            ledger.confirm(latest.serial, at: moment, seconds)
            return OriginResponse(
                status: 304,
                fields: path.fields(tag: latest.tag, serial: latest.serial, moment: moment)
            )
        }
        let isBroken = !ledger.isCalm && dice.oneIn(30)
        let content = ledger.add(
            path,
            language,
            caller: request.fields["X-Caller"] ?? "",
            at: moment,
            seconds,
            isBroken: isBroken
        )
        var fields = path.fields(tag: content.tag, serial: content.serial, moment: moment)
        let bytes = path.body(content.serial, language)
        fields["Content-Length"] = String(bytes.count)
        let sent = isBroken ? Array(bytes.prefix(bytes.count / 3)) : bytes
        return OriginResponse(
            status: 200,
            fields: fields,
            body: BodyStream(FleetBody(sent, dice))
        )
    }
}

/// A body that arrives in a few pieces.
private final class FleetBody: BodySource {
    private let bytes: [UInt8]
    private let dice: Dice
    private let offset = Atomic(0)

    init(_ bytes: [UInt8], _ dice: Dice) {
        self.bytes = bytes
        self.dice = dice
    }

    func next() async throws -> ByteChunk? {
        for _ in 0..<dice.below(3) { await Task.yield() }
        try Task.checkCancellation()
        let start = offset.load(ordering: .relaxed)
        guard start < bytes.count else { return nil }
        let end = min(bytes.count, start + 1 + dice.below(bytes.count))
        offset.store(end, ordering: .relaxed)
        return ByteChunk(Array(bytes[start..<end]))
    }

    func cancel() {}
}
