import CacheEngine
import CacheTestSupport
import Synchronization

/// A correct HTTP server of one resource under many URLs, with faults on request.
///
/// It evaluates preconditions and ranges itself, and logs its requests and replies.
final class OracleOrigin: Origin {
    /// How the origin answers the requests that follow.
    enum Conduct: String, CaseIterable, Sendable {
        /// It serves the first version, as RFC 9110 requires.
        case same
        /// It serves the second version, as RFC 9110 requires.
        case new
        /// It answers every request with a part of the second version.
        case part
        /// It answers every request with a 304 for the first version.
        case notModified
        case missing
        case preconditionFailed
        case unsatisfiable
        case error
        /// It closes the connection before the response.
        case cut
        /// It closes the connection in the middle of the content.
        case torn
        /// It answers 412 to every precondition, and otherwise serves the first version.
        case refusesConditions
        /// It answers 416 to every range, and otherwise serves the first version.
        case refusesRanges

        /// The version that is served after the conduct ends.
        var version: Int { self == .new || self == .part ? 2 : 1 }
    }

    private struct State {
        var conduct = Conduct.same
        var version = 1
        var log: [String: [OriginExchange]] = [:]
    }

    private let clock: TestClock
    private let validators: Representation.Validators
    private let cacheControl: String
    /// Whether responses depend on `Accept-Language` and carry a matching `Vary`.
    private let varies: Bool
    private let state = Mutex(State())

    init(
        _ clock: TestClock,
        validators: Representation.Validators,
        cacheControl: String,
        varies: Bool
    ) {
        self.clock = clock
        self.validators = validators
        self.cacheControl = cacheControl
        self.varies = varies
    }

    func behave(_ conduct: Conduct, version: Int) {
        state.withLock {
            $0.conduct = conduct
            $0.version = version
        }
    }

    var version: Int { state.withLock { $0.version } }

    /// Drops the log of a URL: the cache must not reuse its responses any longer.
    func forget(_ url: String) { state.withLock { $0.log[url] = nil } }

    /// The exchanges of a URL, in order.
    func log(_ url: String) -> [OriginExchange] { state.withLock { $0.log[url] ?? [] } }

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        let reply = reply(to: Asked(request.method, request.fields))
        let exchange = OriginExchange(
            fields: request.fields,
            asked: Asked(request.method, request.fields),
            reply: reply,
            atSeconds: clock.nowSeconds
        )
        state.withLock { $0.log[request.url, default: []].append(exchange) }
        return try reply.response(dateSeconds: clock.nowSeconds, cacheControl)
    }

    /// The reply to a request now; the origin's state does not change.
    func reply(to asked: Asked) -> Reply {
        let (conduct, version) = state.withLock { ($0.conduct, $0.version) }
        let current = Representation(version: version, asked, varies: varies, validators)
        var reply = honestReply(to: asked, current)
        switch conduct {
        case .same, .new: break
        case .part:
            if asked.method == .get, reply.status == 200 { reply.cut(to: asked.range, of: current) }
        case .notModified: reply = Reply(status: 304, current)
        case .missing: reply = Reply(status: 404, content: "missing")
        case .preconditionFailed: reply = Reply(status: 412, content: "failed")
        case .unsatisfiable: reply = Reply(status: 416, content: "range")
        case .error: reply = Reply(status: 500, content: "error")
        case .cut: reply = Reply(status: Reply.cut)
        case .torn: reply.isTorn = reply.status == 200 || reply.status == 206
        case .refusesConditions:
            if asked.hasReadCondition || asked.hasWriteCondition {
                reply = Reply(status: 412, content: "failed")
            }
        case .refusesRanges:
            if asked.range != nil { reply = Reply(status: 416, content: "range") }
        }
        reply.varies = varies
        reply.setsCookie = asked.hasCookie
        reply.isBodiless = asked.method == .head || reply.status == 304
        return reply
    }

    private func honestReply(to asked: Asked, _ current: Representation) -> Reply {
        switch asked.outcome(on: current, dateSeconds: clock.nowSeconds) {
        case .preconditionFailed: return Reply(status: 412, content: "failed")
        case .notModified: return Reply(status: 304, current)
        case .unsatisfiable:
            var reply = Reply(status: 416, content: "range")
            reply.contentRange = "bytes */\(current.content.utf8.count)"
            return reply
        case .part(let range):
            var reply = Reply(status: 206, current)
            reply.take(range, of: current)
            return reply
        case .whole:
            guard asked.isRead else { return Reply(status: 204) }
            return Reply(status: 200, current, content: current.content)
        }
    }
}

/// One request to the origin, and its reply.
struct OriginExchange: Sendable {
    let fields: HeaderFields
    let asked: Asked
    let reply: Reply
    let atSeconds: Int64
}

/// A reply of the origin, before it becomes a message.
struct Reply: Hashable, Sendable {
    /// The status of a reply that never comes.
    static let cut = 0

    let status: Int
    /// Present in a 200, 206 and 304.
    var representation: Representation?
    var content = ""
    var contentRange: String?
    var varies = false
    var setsCookie = false
    var isBodiless = false
    var isTorn = false

    init(status: Int, _ representation: Representation? = nil, content: String = "") {
        self.status = status
        self.representation = representation
        self.content = content
    }

    mutating func take(_ range: Range<Int>, of current: Representation) {
        content = current.slice(range)
        contentRange =
            "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(current.content.utf8.count)"
    }

    /// Turns the reply into a part: the requested one, else the first bytes.
    mutating func cut(to range: Asked.ByteRange?, of current: Representation) {
        let size = current.content.utf8.count
        var part = 0..<4
        switch range {
        case .from(let first, let last) where first < size:
            part = first..<min(size, (last ?? size - 1) + 1)
        case .last(let count): part = max(0, size - count)..<size
        default: break
        }
        self = Reply(status: 206, current)
        take(part, of: current)
    }

    /// Every response claims to be fresh, as on many servers; errors too.
    func response(dateSeconds: Int64, _ cacheControl: String) throws -> OriginResponse {
        guard status != Self.cut else {
            throw CacheError(.originFailed, detail: "The connection was closed")
        }
        var fields: HeaderFields = [
            "Date": Moment.text(dateSeconds), "Cache-Control": cacheControl,
        ]
        if let tag = representation?.tag { fields.append("ETag", tag) }
        if let modified = representation?.modifiedSeconds {
            fields.append("Last-Modified", Moment.text(modified))
        }
        if let contentRange { fields.append("Content-Range", contentRange) }
        if varies { fields.append("Vary", "Accept-Language") }
        if setsCookie { fields.append("Set-Cookie", "seen=1") }
        if status != 304, status != 204 {
            fields.append("Content-Length", String(content.utf8.count))
        }
        if isBodiless || status == 204 { return OriginResponse(status: status, fields: fields) }
        return OriginResponse(status: status, fields: fields, body: body)
    }

    private var body: BodyStream {
        guard isTorn else { return BodyStream(ByteChunk(content)) }
        let manual = ManualBody()
        manual.feed(String(content.prefix(2)))
        manual.fail(CacheError(.originFailed, detail: "The connection was closed"))
        return manual.stream(count: content.utf8.count)
    }
}
