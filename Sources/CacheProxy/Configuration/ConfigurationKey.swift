import CacheEngine

/// One option: its name, its description, and the setting it changes.
struct ConfigurationKey: Sendable {
    typealias Setter = @Sendable (String, inout ProxyConfiguration) throws(ValueFault) -> Void

    let name: String
    let argument: String
    let help: String
    let set: Setter

    private typealias Value = ConfigurationValue

    /// The options that belong to another one.
    static let parts: [(name: String, of: String)] = [
        ("disk-size", "disk"), ("disk-sync", "disk"), ("fleet-purge-lag", "fleet"),
        ("fleet-cut-off", "fleet"), ("fleet-share", "fleet"),
    ]

    /// The options that a command line or a file may give several times.
    static let repeatable: Set<String> = ["origin"]

    static let all: [ConfigurationKey] = [
        .init("listen", "ADDR:PORT", "where clients connect (127.0.0.1:8080)", \.listen) {
            text throws(ValueFault) in try ListenAddress(parsing: text)
        },
        .init("origin", "URL", "a server behind the proxy; may be given several times") {
            text,
            into throws(ValueFault) in into.origins.append(try Value.origin(text))
        },
        .init("memory", "SIZE", "memory of the cache (256M)", \.memory, Value.memory),
        .init("disk", "DIR", "directory of the disk cache (none)", \.diskDirectory, Value.path),
        .init("disk-size", "SIZE", "limit of the disk cache (10G)", \.diskSize, Value.size),
        .init(
            "disk-sync",
            "none|segments|removals",
            "what the disk confirms at once (none)",
            \.diskSync,
            Value.choice(["none": .none, "segments": .onSegmentSeal, "removals": .onRemoval])
        ),
        .init(
            "workers",
            "N",
            "event loops, one thread each (1)",
            \.workers,
            Value.count(in: 1...256)
        ),
        .init(
            "mode",
            "shared|private",
            "whose cache it is (shared)",
            \.mode,
            Value.choice(["shared": .shared, "private": .private])
        ),
        .init("admin", "ADDR:PORT|unix:PATH", "metrics, health and purges (none)", \.admin) {
            text throws(ValueFault) in try ListenAddress(parsing: text)
        },
        .init(
            "purge-token",
            "FILE",
            "file with the token that purges need",
            \.purgeTokenFile,
            Value.path
        ),
        .init(
            "fleet",
            "redis://HOST:PORT/NAME",
            "log of the purges of several machines (none)",
            \.fleet,
            Value.fleet
        ),
        .init(
            "fleet-purge-lag",
            "SECONDS",
            "without the log until this machine is cut off (10)",
            \.fleetLag,
            Value.seconds
        ),
        .init(
            "fleet-cut-off",
            "serve|revalidate",
            "what it does when it is cut off (serve)",
            \.fleetCutOff,
            Value.choice
        ),
        .init(
            "fleet-share",
            "purges|entries",
            "what several machines share through Redis (purges)",
            \.fleetShares,
            Value.choice
        ),
        .init("access-log", "FILE|-", "log of requests (none)", \.accessLog, Value.path),
        .init(
            "name",
            "NAME",
            "name in Via, CDN-Loop and Cache-Status (random)",
            \.name,
            Value.token
        ),
        .init(
            "connect-timeout",
            "SECONDS",
            "until an origin is connected (2)",
            \.connectTime,
            Value.seconds
        ),
        .init(
            "first-byte-timeout",
            "SECONDS",
            "from a request's end to its response (60)",
            \.firstByteTime,
            Value.seconds
        ),
        .init(
            "between-bytes-timeout",
            "SECONDS",
            "without a byte at an origin (60)",
            \.betweenBytesTime,
            Value.seconds
        ),
        .init(
            "origin-connections",
            "N",
            "connections to one origin (connections x workers)",
            \.originConnectionsMax,
            Value.count(in: 1...1_000_000)
        ),
        .init(
            "head-timeout",
            "SECONDS",
            "for the head of a request (10)",
            \.headTime,
            Value.seconds
        ),
        .init("idle-timeout", "SECONDS", "between requests (60)", \.idleTime, Value.seconds),
        .init(
            "drain-timeout",
            "SECONDS",
            "for running responses at the end (30)",
            \.drainTime,
            Value.anySeconds
        ),
        .init(
            "connections",
            "N",
            "connections of one worker (20000)",
            \.connectionsMax,
            Value.count(in: 1...1_000_000)
        ),
        .init("max-content", "SIZE", "largest content of a request (1G)", \.contentMax, Value.size),
        .init(
            "send-timeout",
            "SECONDS",
            "for a client that reads nothing (60)",
            \.sendTime,
            Value.seconds
        ),
        .init(
            "set-cookie",
            "store|strip|pass",
            "responses with Set-Cookie (pass)",
            \.cookies,
            Value.choice(["store": .store, "strip": .strip, "pass": .refuse])
        ),
        .init(
            "grace",
            "SECONDS",
            "how long stale responses may stand in (0)",
            \.grace,
            Value.wholeSeconds
        ),
        .init(
            "stale-on-failure",
            "SECONDS",
            "how long, if an origin gives no response (86400)",
            \.staleOnFailure,
            Value.wholeSeconds
        ),
        .init(
            "lifetime",
            "STATUS=SECONDS,...",
            "lifetime of responses without one (guessed)",
            \.lifetimes,
            Value.lifetimes
        ),
        .init(
            "ignore-query",
            "NAME,...",
            "parameters that keys and origins do not get (none)",
            \.ignoredParameters
        ) { text throws(ValueFault) in try IgnoredParameters(parsing: text) },
        .init(
            "encodings",
            "NAME,...",
            "the encodings that origins offer (any)",
            \.encodings
        ) { text throws(ValueFault) in try OfferedEncodings(parsing: text) },
        .init(
            "tags",
            "pass|strip",
            "Cache-Tag and Surrogate-Key for clients (strip)",
            \.tags,
            Value.choice
        ),
        .init(
            "field-names",
            "plain|any",
            "names of request fields that origins get (plain)",
            \.fieldNames,
            Value.choice
        ),
        .init(
            "origin-host",
            "client|origin",
            "whose host origins get in Host (client)",
            \.originHost,
            Value.choice
        ),
        .init(
            "forwarded",
            "off|add|replace",
            "X-Forwarded-* and Forwarded (off)",
            \.forwarded,
            Value.choice
        ),
        .init(
            "proxy-protocol-from",
            "NETWORK,...|unix",
            "proxies in front, which send PROXY headers (none)",
            \.proxyPeers
        ) { text throws(ValueFault) in try ProxyPeers(parsing: text) },
        .init(
            "condition-miss",
            "whole|forward",
            "conditional requests with nothing stored (whole)",
            \.conditionMiss,
            Value.choice(["whole": .whole, "forward": .forwarded])
        ),
        .init(
            "ignore-client-no-cache",
            "",
            "do not obey Cache-Control of clients",
            \.ignoresClientCacheControl,
            Value.isOn
        ),
    ]

    /// Whether it is a switch: `on`, `off`, or no value, which means `on`.
    var isFlag: Bool { argument.isEmpty }

    init(_ name: String, _ argument: String, _ help: String, set: @escaping Setter) {
        self.name = name
        self.argument = argument
        self.help = help
        self.set = set
    }

    init<Value>(
        _ name: String,
        _ argument: String,
        _ help: String,
        _ place: any WritableKeyPath<ProxyConfiguration, Value> & Sendable,
        _ read: @escaping @Sendable (String) throws(ValueFault) -> Value
    ) {
        self.init(name, argument, help) { (text, into) throws(ValueFault) in
            into[keyPath: place] = try read(text)
        }
    }
}
