import CacheEngine
import CacheEngineRedis

@testable import CacheProxy

/// A value for one option that is not its default, and the setting that it gives.
struct OptionSample: Sendable {
    let option: String
    let text: String
    /// Whether a configuration has the value.
    let isIn: @Sendable (ProxyConfiguration) -> Bool

    init(
        _ option: String,
        _ text: String,
        isIn: @escaping @Sendable (ProxyConfiguration) -> Bool
    ) {
        self.option = option
        self.text = text
        self.isIn = isIn
    }

    private init<Value: Equatable & Sendable>(
        _ option: String,
        _ text: String,
        _ place: any KeyPath<ProxyConfiguration, Value> & Sendable,
        _ value: Value
    ) {
        self.init(option, text) { $0[keyPath: place] == value }
    }

    /// One sample for each option.
    static let all: [OptionSample] = addresses + cache + times + limits + rules

    /// The command line of all samples but one.
    ///
    /// It is valid without `mode`, or without `fleet-share`: a cache of one client shares no
    /// entries.
    static func arguments(without option: String) -> [String] {
        all.filter { $0.option != option }.map { "--\($0.option)=\($0.text)" }
    }

    private static let addresses: [OptionSample] = [
        .init("listen", "[::1]:9", \.listen, .tcp(host: "::1", port: 9)),
        .init("origin", "http://a") { $0.origins.map(\.description) == ["http://a"] },
        .init("admin", "unix:/tmp/s", \.admin, .unix(path: "/tmp/s")),
        // The first line of any file is a token if it is long enough.
        .init("purge-token", #filePath, \.purgeTokenFile, #filePath),
        .init("access-log", "-", \.accessLog, "-"),
        .init("name", "me", \.name, "me"),
        .init("proxy-protocol-from", "10.0.0.0/8") { $0.proxyPeers?.networks.count == 1 },
    ]

    private static let cache: [OptionSample] = [
        .init("memory", "64M", \.memory, .megabytes(64)),
        .init("disk", "/tmp/x", \.diskDirectory, "/tmp/x"),
        .init("disk-size", "2GiB", \.diskSize, .gigabytes(2)),
        .init("disk-sync", "removals", \.diskSync, .onRemoval),
        .init("mode", "private", \.mode, .private),
        .init("fleet", "redis://a:1/b", \.fleet, "redis://a:1/b"),
        .init("fleet-purge-lag", "3.5", \.fleetLag, .seconds(3.5)),
        .init("fleet-cut-off", "revalidate", \.fleetCutOff, .revalidate),
        .init("fleet-share", "entries", \.fleetShares, .entries),
    ]

    private static let times: [OptionSample] = [
        .init("first-byte-timeout", "1.5", \.firstByteTime, .seconds(1.5)),
        .init("connect-timeout", "7", \.connectTime, .seconds(7)),
        .init("between-bytes-timeout", "8", \.betweenBytesTime, .seconds(8)),
        .init("head-timeout", "2", \.headTime, .seconds(2)),
        .init("idle-timeout", "3", \.idleTime, .seconds(3)),
        .init("drain-timeout", "4", \.drainTime, .seconds(4)),
        .init("send-timeout", "11", \.sendTime, .seconds(11)),
        .init("grace", "12", \.grace, .seconds(12)),
        .init("stale-on-failure", "13", \.staleOnFailure, .seconds(13)),
        .init(
            "lifetime",
            "200=60,404=0",
            \.lifetimes,
            [200: .seconds(60), 404: .zero]
        ),
    ]

    private static let limits: [OptionSample] = [
        .init("workers", "3", \.workers, 3),
        .init("origin-connections", "9", \.originConnectionsMax, 9),
        .init("connections", "5", \.connectionsMax, 5),
        .init("max-content", "6K", \.contentMax, .kilobytes(6)),
    ]

    private static let rules: [OptionSample] = [
        .init("set-cookie", "strip", \.cookies, .strip),
        .init("tags", "pass", \.tags, .pass),
        .init("field-names", "any", \.fieldNames, .any),
        .init("origin-host", "origin", \.originHost, .origin),
        .init("encodings", "br,GZIP") { $0.encodings?.names == ["br", "gzip"] },
        .init("ignore-query", "a,b*") {
            $0.ignoredParameters?.removed(from: "http://h/?a=1&bc&c") == "http://h/?c"
        },
        .init("forwarded", "replace", \.forwarded, .replace),
        .init("condition-miss", "forward", \.conditionMiss, .forwarded),
        .init("ignore-client-no-cache", "on", \.ignoresClientCacheControl, true),
    ]
}
