import CacheEngine
import Synchronization

/// The administration of a proxy, on a listener of its own.
///
///     GET /healthz · GET /metrics · GET /statistics
///     PURGE <url>                        removes every variant stored for the URL
///     PURGE / with Cache-Tag: a, b       removes entries with one of the tags (Surrogate-Key: a b)
///     PURGE / with Purge-Everything: 1   removes every entry
///     … with Soft-Purge: 1               makes them stale instead
///     … with Purge-Wait: fleet           is answered once the other machines have applied it
///
/// In a fleet, the response to a purge has the number of replicas that confirmed it; its status is
/// 202 if the log's server has replicas and none of them did, and 503 if the log has not taken it.
/// A purge that waits for the fleet has the numbers of the machines that are known and of those that
/// have applied it; its status is also 202 if these differ or are not known.
///
/// Purges need `Authorization: Bearer <token>`; without a token file they are disabled.
final class AdminDesk: TaskResponder {
    private let cache: HTTPCache
    private let pool: OriginPool
    private let token: Mutex<String?>
    private let server = Mutex<ProxyServer?>(nil)

    /// The number of tags one purge may name.
    private static let tagsMax = 256

    init(cache: HTTPCache, pool: OriginPool, token: String?) {
        self.cache = cache
        self.pool = pool
        self.token = Mutex(token)
    }

    /// Sets the server whose counters the metrics show.
    func show(_ server: ProxyServer) { self.server.withLock { $0 = server } }

    func setToken(_ token: String?) { self.token.withLock { $0 = token } }

    nonisolated(nonsending) func respond(to request: CacheRequest) async throws
        -> CacheResponse
    {
        if request.method.name == "PURGE" { return try await purge(request) }
        guard request.method == .get || request.method == .head else {
            let name = request.method.name
            var response = Self.text(405, "`\(name)` is not allowed; send GET, HEAD or PURGE\n")
            response.fields.append("Allow", "GET, HEAD, PURGE")
            return response
        }
        let path = Self.path(request.url)
        switch path {
        case "/healthz": return health
        case "/metrics": return Self.text(200, await metrics())
        case "/statistics": return Self.text(200, await statistics(), type: "application/json")
        default:
            let pages = "/healthz, /metrics or /statistics"
            return Self.text(404, "There is no `\(path)`; ask for \(pages)\n")
        }
    }

    // MARK: Purging

    private func purge(_ request: CacheRequest) async throws -> CacheResponse {
        if let refusal = refusal(of: request) { return refusal }
        let isSoft: Bool
        switch request.fields["Soft-Purge"] {
        case nil, "0": isSoft = false
        case "1": isSoft = true
        case let value?:
            return Self.text(400, "Soft-Purge: `\(value)` is not known; send 0 or 1\n")
        }
        let wait = PurgeWait(rawValue: request.fields["Purge-Wait"] ?? PurgeWait.log.rawValue)
        guard let wait else {
            let value = request.fields["Purge-Wait"] ?? ""
            return Self.text(400, "Purge-Wait: `\(value)` is not known; send log or fleet\n")
        }
        let isOfEverything: Bool
        switch request.fields["Purge-Everything"] {
        case nil: isOfEverything = false
        case "1": isOfEverything = true
        case let value?:
            return Self.text(
                400,
                "Purge-Everything: `\(value)` is not known; send 1, or leave the field out\n"
            )
        }
        let tags = Self.tags(request.fields)
        if let fault = Self.fault(of: tags, in: request.fields, isOfEverything) { return fault }
        let targets: [PurgeTarget] =
            if isOfEverything {
                [.everything]
            } else if tags.isEmpty {
                [.request(CacheRequest(url: request.url))]
            } else {
                tags.map { .tag($0) }
            }
        let outcome = try await cache.attemptPurge(targets, isSoft: isSoft, waitingFor: wait)
        // A soft purge of tags, or of everything, counts nothing.
        var rows = [("removed", String(outcome.entries))]
        if isOfEverything {
            rows.append(("everything", "true"))
        } else if tags.isEmpty {
            // It shows a host or a scheme that clients do not use, with which nothing is found.
            rows.append(("url", Self.quoted(request.url)))
        }
        rows += [("tags", String(tags.count)), ("soft", String(isSoft))]
        let (status, shared) = Self.rows(of: outcome.sharing, wait)
        let text = (rows + shared).map { "\"\($0.0)\":\($0.1)" }.joined(separator: ",")
        return Self.text(status, "{\(text)}\n", type: "application/json")
    }

    /// The answer to a purge whose sender may not purge; `nil` if it may.
    private func refusal(of request: CacheRequest) -> CacheResponse? {
        guard let token = token.withLock({ $0 }) else {
            return Self.text(403, "Purges are disabled; give --purge-token a file\n")
        }
        guard !Self.isEqual(Self.credentials(request.fields), token) else { return nil }
        var response = Self.text(
            401,
            "The token is missing or wrong; send Authorization: Bearer and the token\n"
        )
        response.fields.append("WWW-Authenticate", "Bearer")
        return response
    }

    /// The answer to a purge that has fields for tags and names no tag, too many tags, or everything
    /// beside them; `nil` if there is no such fault.
    private static func fault(
        of tags: [String],
        in fields: HeaderFields,
        _ isOfEverything: Bool
    ) -> CacheResponse? {
        guard ["Cache-Tag", "Surrogate-Key"].contains(where: { fields[$0] != nil }) else {
            return nil
        }
        if isOfEverything {
            return text(
                400,
                "Purge-Everything excludes Cache-Tag and Surrogate-Key; leave one of them out\n"
            )
        }
        if tags.isEmpty {
            // An empty variable in a script must not purge the URL instead.
            return text(
                400,
                "Cache-Tag and Surrogate-Key name no tag; name one, or send neither field\n"
            )
        }
        guard tags.count > tagsMax else { return nil }
        return text(413, "\(tags.count) tags are too many; send at most \(tagsMax)\n")
    }

    /// The status of a purge, and the facts about the fleet.
    private static func rows(
        of sharing: Result<FleetReceipt, CacheError>?,
        _ wait: PurgeWait
    ) -> (status: Int, rows: [(String, String)]) {
        switch sharing {
        case nil: return (200, [])
        case .failure(let error):
            return (503, [("replicated", "null"), ("error", quoted(error.detail))])
        case .success(let receipt):
            var rows = [("replicated", String(receipt.replicas))]
            guard wait == .fleet else { return (receipt.isReplicated ? 200 : 202, rows) }
            let shown = { (number: Int?) in number.map(String.init) ?? "null" }
            rows += [
                ("machines", shown(receipt.reach?.machines)),
                ("applied", shown(receipt.reach?.applied)),
            ]
            let isComplete = receipt.reach?.isComplete ?? false
            return (receipt.isReplicated && isComplete ? 200 : 202, rows)
        }
    }

    /// A text as JSON writes it.
    private static func quoted(_ text: String) -> String {
        let escaped = PlainText.escaped(text).map { character in
            character == "\"" || character == "\\" ? "\\\(character)" : String(character)
        }
        return "\"\(escaped.joined())\""
    }

    private static func tags(_ fields: HeaderFields) -> [String] {
        (fields.values("Cache-Tag") + fields.values("Surrogate-Key"))
            .flatMap { CachingRules.tagNames(in: $0) }
    }

    /// The token after `Bearer`, in any case (RFC 9110 §11.1); empty for another scheme.
    private static func credentials(_ fields: HeaderFields) -> String {
        let field = fields["Authorization"] ?? ""
        let scheme = field.prefix { $0 != " " }
        guard scheme.lowercased() == "bearer" else { return "" }
        return String(field.dropFirst(scheme.count).drop { $0 == " " })
    }

    /// Takes as long for a wrong token as for the right one.
    private static func isEqual(_ left: String, _ right: String) -> Bool {
        let left = Array(left.utf8)
        let right = Array(right.utf8)
        var difference = left.count ^ right.count
        for index in 0..<max(left.count, right.count) {
            let a = index < left.count ? left[index] : 0
            let b = index < right.count ? right[index] : 0
            difference |= Int(a ^ b)
        }
        return difference == 0 || Mutant.purgesForAnyToken.isOn
    }

    // MARK: Showing

    /// A balancer sends no more clients to a proxy that drains.
    private var health: CacheResponse {
        let isDraining = server.withLock { $0 }?.isDraining ?? false
        return isDraining ? Self.text(503, "draining\n") : Self.text(200, "ok\n")
    }

    private func total(_ counter: WorkerCounters.Counter) -> Int {
        server.withLock { $0 }?.counters.reduce(0) { $0 + $1[counter] } ?? 0
    }

    private func metrics() async -> String {
        var metrics = PrometheusText(prefix: "proxy")
        for (name, counter, help) in Self.counters {
            metrics.add(name, .counter, help, total(counter))
        }
        metrics.add(
            "log_lines_dropped_total",
            .counter,
            "Lines of the access log dropped because its reader or its device took no more.",
            server.withLock { $0 }?.droppedLogLines ?? 0
        )
        metrics.add(
            "connections_open",
            .gauge,
            "Connections of clients that are open.",
            total(.connectionsOpen)
        )
        metrics.add(
            "turn_bytes_max",
            .gauge,
            "The most bytes one worker has read and sent between two looks at its sockets.",
            server.withLock { $0 }?.counters.map { $0[.turnBytesMax] }.max() ?? 0
        )
        metrics.add(
            "responses_total",
            .counter,
            "Responses by class of status.",
            Self.classes.map { (PrometheusText.label("class", $0), Double(total($1))) }
        )
        metrics.add(
            "origin_up",
            .gauge,
            "1 for an origin that is asked, 0 for one that is left out after failures.",
            pool.members.map { member in
                let labels = PrometheusText.label("origin", "\(member.address)")
                return (labels, member.downUntil == nil ? 1 : 0)
            }
        )
        return await cache.statistics.prometheusText(prefix: "cache") + metrics.text
    }

    private static let classes: [(String, WorkerCounters.Counter)] = [
        ("1xx", .informational), ("2xx", .successful), ("3xx", .redirected),
        ("4xx", .clientErrors), ("5xx", .serverErrors), ("other", .otherStatuses),
    ]

    private static let counters: [(name: String, WorkerCounters.Counter, help: String)] = [
        ("connections_total", .connections, "Connections accepted from clients."),
        (
            "peers_refused_total", .peersRefused,
            "Connections refused because --proxy-protocol-from does not name their address."
        ),
        (
            "header_faults_total", .headerFaults,
            "Connections closed because their PROXY header was missing, invalid or late."
        ),
        ("connections_displaced_total", .displaced, "Idle connections closed to make room."),
        ("requests_total", .requests, "Requests read whole up to the end of their head."),
        ("loop_hits_total", .hits, "Requests answered at once, from memory or the page cache."),
        ("exchanges_total", .exchanges, "Requests not answered at once."),
        ("refused_total", .refused, "Requests refused before anything was done with them."),
        ("aborted_total", .aborted, "Connections that ended before the end of a response."),
        (
            "timeouts_total", .timeouts,
            "Connections whose client stood still within a request or a response."
        ),
        ("sent_bytes_total", .bytesOut, "Bytes sent to clients."),
    ]

    private func statistics() async -> String {
        let statistics = await cache.statistics
        var rows: [(String, String)] = CacheInfo.Source.allCases.map {
            ($0.rawValue, String(statistics.answers[$0] ?? 0))
        }
        rows += [
            ("originRequests", String(statistics.originRequests)),
            ("originFailures", String(statistics.originFailures)),
            ("stored", String(statistics.stored)),
            ("evictions", String(statistics.evictions)),
            ("hitRatio", String(statistics.hitRatio)),
            ("memoryEntries", String(statistics.memory.entries)),
            ("memoryBytes", String(statistics.memory.bytes)),
            ("diskEntries", String(statistics.disk.entries)),
            ("diskBytes", String(statistics.disk.bytes)),
            ("requests", String(total(.requests))),
            ("connectionsOpen", String(total(.connectionsOpen))),
        ]
        return "{" + rows.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ",") + "}\n"
    }

    private static func path(_ url: String) -> Substring {
        let rest = url.dropFirst(url.hasPrefix("https:") ? 8 : 7)
        return rest.drop { $0 != "/" }.prefix { $0 != "?" }
    }

    private static func text(
        _ status: Int,
        _ text: String,
        type: String = "text/plain; charset=utf-8"
    ) -> CacheResponse {
        CacheResponse(
            status: status,
            fields: HeaderFields([("Content-Type", type), ("Cache-Control", "no-store")]),
            body: BodyStream(ByteChunk(text))
        )
    }
}
