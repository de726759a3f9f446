import CacheEngine

/// One thing that can be configured: its name, how it is described, and what a value does.
struct ConfigurationKey: Sendable {
    let name: String
    let argument: String
    let help: String
    let set: @Sendable (String, inout ProxyConfiguration) -> Bool

    static let all: [ConfigurationKey] = [
        .init("listen", "ADDR:PORT", "where clients connect (127.0.0.1:8080)") { text, into in
            assign(ListenAddress(text), to: &into.listen)
        },
        .init("origin", "URL", "a server behind the proxy; may be given several times") {
            text,
            into in
            guard let origin = OriginAddress(text) else { return false }
            into.origins.append(origin)
            return true
        },
        .init("memory", "SIZE", "memory of the cache (256M)") { text, into in
            assign(size(text), to: &into.memory)
        },
        .init("disk", "DIR", "directory of the disk cache (none)") { text, into in
            into.diskDirectory = text
            return !text.isEmpty
        },
        .init("disk-size", "SIZE", "how much the directory may hold (10G)") { text, into in
            assign(size(text), to: &into.diskSize)
        },
        .init("workers", "N", "event loops, one thread each (1)") { text, into in
            assign(count(text, in: 1...256), to: &into.workers)
        },
        .init("mode", "shared|private", "whose cache it is (shared)") { text, into in
            assign(Configuration.Mode(rawValue: text), to: &into.mode)
        },
        .init("admin", "ADDR:PORT|unix:PATH", "metrics, health and purges (none)") { text, into in
            into.admin = ListenAddress(text)
            return into.admin != nil
        },
        .init("purge-token", "FILE", "file with the token that purges need") { text, into in
            into.purgeTokenFile = text
            return !text.isEmpty
        },
        .init("access-log", "FILE|-", "log of requests (none)") { text, into in
            into.accessLog = text
            return !text.isEmpty
        },
        .init("name", "NAME", "name in Via, CDN-Loop and Cache-Status (random)") { text, into in
            into.name = text
            return !text.isEmpty && text.utf8.allSatisfy(ByteClass.isToken)
        },
        .init("origin-timeout", "SECONDS", "until an origin's answer begins (60)") { text, into in
            assign(seconds(text), to: &into.originSeconds)
        },
        .init("head-timeout", "SECONDS", "for the head of a request (10)") { text, into in
            assign(seconds(text), to: &into.headSeconds)
        },
        .init("idle-timeout", "SECONDS", "between requests (60)") { text, into in
            assign(seconds(text), to: &into.idleSeconds)
        },
        .init("drain-timeout", "SECONDS", "for running answers at the end (30)") { text, into in
            assign(seconds(text), to: &into.drainSeconds)
        },
        .init("connections", "N", "connections of one worker (20000)") { text, into in
            assign(count(text, in: 1...1_000_000), to: &into.connectionsMax)
        },
        .init("max-content", "SIZE", "largest content of a request (1G)") { text, into in
            assign(size(text), to: &into.contentMax)
        },
    ]

    init(
        _ name: String,
        _ argument: String,
        _ help: String,
        set: @escaping @Sendable (String, inout ProxyConfiguration) -> Bool
    ) {
        self.name = name
        self.argument = argument
        self.help = help
        self.set = set
    }

    private static func assign<Value>(_ value: Value?, to place: inout Value) -> Bool {
        guard let value else { return false }
        place = value
        return true
    }

    /// `4096`, `64K`, `256M`, `20G`, with or without `B` or `iB` behind the letter.
    static func size(_ text: String) -> ByteCount? {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard let count = Int(digits), count > 0 else { return nil }
        let scale: Int
        switch text.dropFirst(digits.count).lowercased() {
        case "", "b": scale = 1
        case "k", "kb", "kib": scale = 1 << 10
        case "m", "mb", "mib": scale = 1 << 20
        case "g", "gb", "gib": scale = 1 << 30
        case "t", "tb", "tib": scale = 1 << 40
        default: return nil
        }
        let (bytes, overflows) = count.multipliedReportingOverflow(by: scale)
        return overflows ? nil : .bytes(bytes)
    }

    private static func count(_ text: String, in range: ClosedRange<Int>) -> Int? {
        guard let count = Int(text), range.contains(count) else { return nil }
        return count
    }

    private static func seconds(_ text: String) -> Double? {
        guard let seconds = Double(text), seconds > 0, seconds <= 86_400 else { return nil }
        return seconds
    }
}
