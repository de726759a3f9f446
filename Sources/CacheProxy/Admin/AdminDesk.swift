package import CacheEngine
import Synchronization

/// What a proxy's keeper may ask it, on a listener of its own.
///
///     GET /healthz · GET /metrics · GET /statistics
///     PURGE <url>                        removes what is stored for the URL, all variants
///     PURGE / with Cache-Tag: a, b       removes what carries one of the tags (Surrogate-Key: a b)
///     … with Soft-Purge: 1               makes it stale instead
///
/// Purges need `Authorization: Bearer <token>`; without a token file there are none.
package final class AdminDesk: Responder {
    private let cache: HTTPCache
    private let pool: OriginPool
    private let token: Mutex<String?>
    private let server = Mutex<ProxyServer?>(nil)

    /// Tags of one purge.
    private static let tagsMax = 256

    package init(cache: HTTPCache, pool: OriginPool, token: String?) {
        self.cache = cache
        self.pool = pool
        self.token = Mutex(token)
    }

    /// The server whose counters are shown.
    package func show(_ server: ProxyServer) { self.server.withLock { $0 = server } }

    package func setToken(_ token: String?) { self.token.withLock { $0 = token } }

    package func respond(to request: CacheRequest) async throws -> CacheResponse {
        if request.method.name == "PURGE" { return try await purge(request) }
        guard request.method == .get || request.method == .head else {
            return Self.text(405, "Method Not Allowed\n")
        }
        switch Self.path(request.url) {
        case "/healthz": return Self.text(200, "ok\n")
        case "/metrics": return Self.text(200, await metrics())
        case "/statistics": return Self.text(200, await statistics(), type: "application/json")
        default: return Self.text(404, "Not Found\n")
        }
    }

    // MARK: Purging

    private func purge(_ request: CacheRequest) async throws -> CacheResponse {
        guard let token = token.withLock({ $0 }) else {
            return Self.text(403, "Purging is not set up\n")
        }
        guard Self.isEqual(request.fields["Authorization"] ?? "", "Bearer \(token)") else {
            var response = Self.text(401, "A token is needed\n")
            response.fields.append("WWW-Authenticate", "Bearer")
            return response
        }
        let isSoft = request.fields["Soft-Purge"] == "1"
        let tags = Self.tags(request.fields)
        guard tags.count <= Self.tagsMax else { return Self.text(413, "Too many tags\n") }
        var removed = 0
        if tags.isEmpty {
            let target = CacheRequest(url: request.url)
            let isFound =
                isSoft
                ? try await cache.makeStale(target) : try await cache.remove(target)
            removed = isFound ? 1 : 0
        }
        for tag in tags {
            if isSoft {
                cache.makeStale(tag: tag)
            } else {
                removed += try await cache.purge(tag: tag).entries
            }
        }
        return Self.text(
            200,
            "{\"removed\":\(removed),\"tags\":\(tags.count),\"soft\":\(isSoft)}\n",
            type: "application/json"
        )
    }

    private static func tags(_ fields: HeaderFields) -> [String] {
        let listed = fields.values("Cache-Tag").flatMap { $0.split { $0 == "," } }
        let spaced = fields.values("Surrogate-Key").flatMap { $0.split { $0 == " " } }
        return (listed + spaced).map { tag in
            var tag = tag
            while tag.first == " " || tag.first == "\t" { tag.removeFirst() }
            while tag.last == " " || tag.last == "\t" { tag.removeLast() }
            return String(tag)
        }.filter { !$0.isEmpty }
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
        return difference == 0
    }

    // MARK: Showing

    private func total(_ counter: WorkerCounters.Counter) -> Int {
        server.withLock { $0 }?.counters.reduce(0) { $0 + $1[counter] } ?? 0
    }

    private func metrics() async -> String {
        var text = await cache.statistics.prometheusText(prefix: "cache")
        func metric(_ name: String, _ kind: String, _ rows: [(String, Int)]) {
            text += "# TYPE proxy_\(name) \(kind)\n"
            for (labels, value) in rows { text += "proxy_\(name)\(labels) \(value)\n" }
        }
        func counter(_ name: String, _ counter: WorkerCounters.Counter) {
            metric(name, "counter", [("", total(counter))])
        }
        counter("connections_total", .connections)
        metric("connections_open", "gauge", [("", total(.connectionsOpen))])
        counter("requests_total", .requests)
        counter("loop_hits_total", .hits)
        counter("exchanges_total", .exchanges)
        counter("refused_total", .refused)
        counter("aborted_total", .aborted)
        counter("timeouts_total", .timeouts)
        counter("sent_bytes_total", .bytesOut)
        metric(
            "responses_total",
            "counter",
            [
                ("{class=\"1xx\"}", total(.informational)), ("{class=\"2xx\"}", total(.successful)),
                ("{class=\"3xx\"}", total(.redirected)), ("{class=\"4xx\"}", total(.clientErrors)),
                ("{class=\"5xx\"}", total(.serverErrors)),
                ("{class=\"other\"}", total(.otherStatuses)),
            ]
        )
        metric(
            "origin_up",
            "gauge",
            pool.members.map { ("{origin=\"\($0.address)\"}", $0.downUntil == nil ? 1 : 0) }
        )
        return text
    }

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
        let rest = url.dropFirst(7)
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
