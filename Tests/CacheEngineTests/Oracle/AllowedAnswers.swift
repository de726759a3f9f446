import CacheEngine

/// All responses that RFC 9110 and RFC 9111 allow for one request.
///
/// A pure function of the client's request, of all exchanges with the origin so far, and of the
/// origin's response without a cache. It does not use the engine's rules.
struct AllowedAnswers {
    let asked: Asked
    let nowSeconds: Int64
    /// The origin's response to the same request without a cache.
    let direct: Reply
    /// All exchanges with the origin: the earlier ones, and those on behalf of this request.
    let exchanges: [OriginExchange]
    /// The index of the first exchange on behalf of this request.
    let own: Int
    let terms: Terms

    /// Terms of reuse: those that the origin states in its responses, and a rule of the cache.
    struct Terms: Sendable {
        var lifetimeSeconds = 60
        var staleIfErrorSeconds: Int?
        var conditionMiss = CachingRules.ConditionMiss.forwarded

        var cacheControl: String {
            let stale = staleIfErrorSeconds.map { ", stale-if-error=\($0)" } ?? ""
            return "max-age=\(lifetimeSeconds)\(stale)"
        }
    }

    func callAsFunction() -> Set<Told> {
        guard asked.isRead else {
            return isUncalledFor(direct) ? [Told(direct), .nothing] : [Told(direct)]
        }
        var answers: Set<Told> = []
        if asked.onlyIfCached {
            // RFC 9111 §5.2.1.7: a stored response, or 504. The origin must not be asked.
            answers.insert(.gatewayTimeout)
        } else {
            answers.insert(Told(direct))
            if isUncalledFor(direct) { answers.insert(.nothing) }
        }
        for exchange in exchanges[own...] { answers.formUnion(answersWith(exchange)) }
        for index in exchanges.indices where isStorable(exchanges[index]) && isUsable(index) {
            answers.formUnion(answersFromStore(exchanges[index]))
        }
        return answers
    }

    // MARK: Responses on behalf of this request

    /// Whether the reply does not fit the request: a 206 without Range, a 304 without a condition.
    ///
    /// RFC 9110 §15.3.7 and §15.4.5; the cache may forward or refuse it.
    private func isUncalledFor(_ reply: Reply) -> Bool {
        switch reply.status {
        case 206: asked.range == nil
        case 304: !asked.hasReadCondition || !asked.isRead
        default: false
        }
    }

    /// Evaluates the client's own conditions on the representation just sent or confirmed.
    ///
    /// They apply even if the cache sent other conditions to the origin (RFC 9111 §4.3).
    private func answersWith(_ exchange: OriginExchange) -> Set<Told> {
        // RFC 9111 §4.3.3: a reply other than a 304 or a server error answers the request itself.
        if exchange.reply.status == 412 { return [Told(exchange.reply)] }
        if asked.range == nil, exchange.asked.range == nil, exchange.reply.status == 206 {
            return [Told(exchange.reply), .nothing]
        }
        guard !exchange.reply.isTorn else { return [.nothing] }
        guard let current = exchange.reply.representation else { return [] }
        switch exchange.reply.status {
        case 200 where exchange.asked.method == .get || asked.method == .head: break
        case 206 where exchange.asked.method == .get: break
        case 304 where isKnown(current): break
        default: return []
        }
        return answers(of: current, dateSeconds: nowSeconds)
    }

    /// Whether the cache can hold the content that a 304 refers to.
    private func isKnown(_ current: Representation) -> Bool {
        exchanges.contains {
            isStorable($0) && selects($0) && $0.reply.representation == current
        }
    }

    /// RFC 5861 §4 and RFC 9111 §4.2.4: a server error, no reply, or an unusable 304.
    private var hasFailed: Bool {
        exchanges[own...].contains { exchange in
            let reply = exchange.reply
            if reply.isTorn || [Reply.cut, 500, 502, 503, 504].contains(reply.status) {
                return true
            }
            guard reply.status == 304 else { return false }
            return !exchange.asked.hasReadCondition || !(reply.representation.map(isKnown) ?? false)
        }
    }

    // MARK: Stored responses

    /// RFC 9111 §3, in a shared cache.
    private func isStorable(_ exchange: OriginExchange) -> Bool {
        guard !exchange.asked.noStore, !exchange.asked.isAuthorized else { return false }
        switch exchange.asked.method {
        case .get: break
        case .head: guard asked.method == .head else { return false }
        default: return false
        }
        switch exchange.reply.status {
        case 200, 206, 404, 500: return true
        // 412 and 416 answer the conditions of one client and must not be shared. A 304 has no
        // content to store.
        default: return false
        }
    }

    /// RFC 9111 §4.1.
    private func selects(_ exchange: OriginExchange) -> Bool {
        !exchange.reply.varies || exchange.asked.language == asked.language
    }

    /// RFC 9111 §4: fresh, allowed to be stale, or confirmed, and not superseded.
    private func isUsable(_ index: Int) -> Bool {
        guard selects(exchanges[index]) else { return false }
        let confirmed = lastConfirmation(of: index)
        if exchanges[confirmed...].contains(where: { supersedes($0, exchanges[index]) }) {
            return false
        }
        if confirmed >= own { return true }
        let age = Int(nowSeconds - exchanges[confirmed].atSeconds)
        let staleness = age - terms.lifetimeSeconds
        if isAcceptable(age: age, staleness: staleness) { return true }
        return hasFailed && staleness < terms.staleIfErrorSeconds ?? 86_400
    }

    /// RFC 9111 §4.3.4 and §4.3.5: a 304 and a response to HEAD freshen the response they match.
    private func lastConfirmation(of index: Int) -> Int {
        let stored = exchanges[index]
        guard let current = stored.reply.representation else { return index }
        let last = exchanges.indices.last { later in
            let exchange = exchanges[later]
            guard later > index, exchange.reply.representation == current else { return false }
            if exchange.asked.noStore, later < own { return false }
            return exchange.reply.status == 304
                || exchange.asked.method == .head && exchange.reply.status == 200
        }
        return last ?? index
    }

    /// RFC 9111 §4 (the most recent response), §4.3.5 (HEAD) and §4.4 (invalidation).
    private func supersedes(_ later: OriginExchange, _ stored: OriginExchange) -> Bool {
        guard later.asked.isRead else {
            return (200...399).contains(later.reply.status) && later.reply.status != 304
        }
        guard selects(later), !later.asked.isAuthorized, !later.asked.noStore,
            !later.reply.isTorn
        else { return false }
        switch later.reply.status {
        case 200: return later.reply.representation != stored.reply.representation
        case 404: return later.asked.method == .get && stored.reply.representation != nil
        default: return false
        }
    }

    /// RFC 9111 §5.2.1.
    private func isAcceptable(age: Int, staleness: Int) -> Bool {
        if asked.noCache { return false }
        if let maxAge = asked.maxAge, age > maxAge { return false }
        if let minFresh = asked.minFresh, -staleness < minFresh { return false }
        if staleness < 0 { return true }
        return staleness <= asked.maxStale ?? -1
    }

    private func answersFromStore(_ exchange: OriginExchange) -> Set<Told> {
        guard let current = exchange.reply.representation else { return [Told(exchange.reply)] }
        // RFC 9110 §13.1.1 and §13.1.4: a cache may ignore these conditions, because they do not
        // apply to stored responses. It must neither violate them nor evaluate them itself.
        guard asked.passesWriteConditions(on: current) else { return [] }
        return answers(of: current, dateSeconds: exchange.atSeconds)
    }

    // MARK: Conditions and ranges

    private func answers(of current: Representation, dateSeconds: Int64) -> Set<Told> {
        var answers: Set<Told> = []
        switch asked.outcome(on: current, dateSeconds: dateSeconds) {
        case .notModified: answers.insert(told(304, current))
        case .preconditionFailed: answers.insert(told(412, current))
        case .whole: answers.insert(told(200, current))
        case .part(let range):
            answers.insert(told(206, current, range))
            // RFC 9110 §14.2: a server may ignore Range.
            answers.insert(told(200, current))
        case .unsatisfiable:
            answers.insert(told(416, current))
            answers.insert(told(200, current))
        }
        if isUnmodifiedByDate(current, dateSeconds) { answers.insert(told(304, current)) }
        return answers
    }

    /// RFC 9111 §4.3.2: without Last-Modified, the stored Date is compared with If-Modified-Since.
    private func isUnmodifiedByDate(_ current: Representation, _ dateSeconds: Int64) -> Bool {
        guard current.modifiedSeconds == nil, asked.ifNoneMatch == nil,
            asked.passesWriteConditions(on: current), let since = asked.ifModifiedSince
        else { return false }
        return dateSeconds <= since
    }

    private func told(_ status: Int, _ current: Representation, _ range: Range<Int>? = nil) -> Told
    {
        var reply = Reply(status: status, current, content: current.content)
        if let range { reply.take(range, of: current) }
        if status == 416 { reply.contentRange = "bytes */\(current.content.utf8.count)" }
        reply.isBodiless = asked.method == .head
        return Told(reply)
    }
}
