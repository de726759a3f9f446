import CacheEngine
import CurlOrigin
import Foundation
import Testing

@testable import CacheProxy

/// The command line asks for something else than the test.
struct OtherOrder: Error {}

@Suite struct ConfigurationReaderTests {
    @Test func everyOptionHasOneSample() {
        let options = OptionSample.all.map(\.option)
        #expect(options.sorted() == ConfigurationKey.all.map(\.name).sorted())
    }

    @Test(arguments: ["mode", "fleet-share"])
    func everyOptionIsRead(but left: String) throws {
        let order = try ConfigurationReader.read(OptionSample.arguments(without: left))
        guard case .run(let read) = order else { throw OtherOrder() }
        for sample in OptionSample.all where sample.option != left {
            #expect(!sample.isIn(ProxyConfiguration()), "\(sample.option) is as without the option")
            #expect(sample.isIn(read), "\(sample.option)")
        }
    }

    @Test func valueOfAnOptionMayBeTheNextArgument() throws {
        let order = try ConfigurationReader.read([
            "--origin", "http://a", "--origin=https://b:1", "--workers", "3",
        ])
        guard case .run(let read) = order else { throw OtherOrder() }
        #expect(read.origins.map(\.description) == ["http://a", "https://b:1"])
        #expect(read.workers == 3)
    }

    /// The options that a running proxy takes over when it reads its configuration again.
    ///
    /// Every other option is one of `ProxyService.fixedOptions`, and is reported.
    static let reloadable: Set<String> = [
        "origin", "purge-token", "origin-connections", "connections", "head-timeout",
        "idle-timeout", "send-timeout", "max-content", "tags", "field-names",
        "forwarded", "proxy-protocol-from", "origin-host", "encodings", "ignore-query",
    ]

    @Test(arguments: ConfigurationKey.all.map(\.name))
    func everyOptionIsTakenOverOrNeedsARestart(_ option: String) throws {
        let key = try #require(ConfigurationKey.all.first { $0.name == option })
        let sample = try #require(OptionSample.all.first { $0.option == option })
        let usual = ProxyConfiguration()
        var changed = usual
        try key.set(sample.text, &changed)
        #expect(sample.isIn(changed))
        let fixed = ProxyService.fixedOptions.filter { $0.differs(usual, changed) }.map(\.name)
        #expect(fixed == (Self.reloadable.contains(option) ? [] : [option]))
    }

    @Test(arguments: ConfigurationKey.parts.map(\.name))
    func optionWithoutEffectIsRefused(_ name: String) throws {
        let values = [
            "disk-size": "1G", "disk-sync": "removals", "fleet-purge-lag": "3",
            "fleet-cut-off": "serve", "fleet-share": "entries",
        ]
        let other = try #require(ConfigurationKey.parts.first { $0.name == name }?.of)
        let value = try #require(values[name])
        let error = ConfigurationError(
            .optionsConflicting,
            "--\(name): without --\(other) it changes nothing; give both"
        )
        #expect(throws: error) {
            try ConfigurationReader.read(["--origin", "http://a", "--\(name)", value])
        }
        // The file may have one of them and the command line the other.
        let file = try Self.file("\(name) \(value)\n")
        defer { Self.remove(file) }
        #expect(throws: error) {
            try ConfigurationReader.read(["--origin", "http://a", "--config", file])
        }
        let whole = other == "disk" ? "/tmp/x" : "redis://a/b"
        _ = try ConfigurationReader.read([
            "--origin", "http://a", "--config", file, "--\(other)", whole,
        ])
    }

    @Test(arguments: [
        ("none", BackingStore.Durability.none), ("segments", .onSegmentSeal),
        ("removals", .onRemoval),
    ])
    func wordsOfTheDisksSyncAreTheEnginesSettings(
        _ row: (word: String, durability: BackingStore.Durability)
    ) throws {
        let read = try OptionTests.read(["--disk", "/tmp/x", "--disk-sync", row.word])
        #expect(read.diskSync == row.durability)
    }

    @Test func originsHaveAsManyConnectionsAsClients() {
        var configuration = ProxyConfiguration()
        configuration.workers = 3
        let usual = ProxyService.curlConfiguration(configuration)
        #expect(usual.connections.maximumPerHost == 3 * configuration.connectionsMax)
        #expect(usual.deadlines.connect == .seconds(2))
        configuration.originConnectionsMax = 7
        #expect(ProxyService.curlConfiguration(configuration).connections.maximumPerHost == 7)
    }

    @Test func fileHoldsTheSameOptions() throws {
        let path = try Self.file(
            "# a comment\nlisten = 127.0.0.1:7\n\norigin http://a # here\norigin http://b\nmemory\t32M\r\n"
        )
        defer { Self.remove(path) }
        guard
            case .check(let read) = try ConfigurationReader.read([
                "--config", path, "--check-config",
            ])
        else { throw OtherOrder() }
        #expect(read.listen == .tcp(host: "127.0.0.1", port: 7))
        #expect(read.origins.count == 2 && read.memory == .megabytes(32) && read.file == path)
    }

    @Test func hashWithinAWordIsNoComment() throws {
        let url = "redis-sentinel://u:pw@10.0.0.1:26379/shop#main"
        let path = try Self.file(
            "origin http://a\t# here\nfleet \(url) # there\naccess-log=/log/a#b #\n #memory 1G\n"
        )
        defer { Self.remove(path) }
        guard
            case .check(let read) = try ConfigurationReader.read([
                "--config", path, "--check-config",
            ])
        else { throw OtherOrder() }
        #expect(read.origins.map(\.description) == ["http://a"])
        #expect(read.accessLog == "/log/a#b")
        #expect(read.fleet != nil)
        #expect(read.memory == ProxyConfiguration().memory)
    }

    @Test func everyOptionIsOnTheProxysPageAndNoOther() throws {
        let page = URL(filePath: #filePath).appending(path: "../../../../docs/cache-proxy.md")
        let text = try String(contentsOf: page.standardized, encoding: .utf8)
        let described = Set(text.matches(of: /`--([a-z-]+)/).map { String($0.1) })
        let onCommandLineOnly = ["config", "check-config", "version", "help"]
        #expect(described == Set(ConfigurationKey.all.map(\.name) + onCommandLineOnly))
    }

    /// The lines of an example.
    private static func example(_ name: String) throws -> [Substring] {
        let file = URL(filePath: #filePath).appending(path: "../../../../Examples/\(name)")
        return try String(contentsOf: file.standardized, encoding: .utf8).split(separator: "\n")
    }

    @Test func theConfigurationForSystemdIsSound() throws {
        let token = try Self.file("0123456789abcdef\n")
        let lines = try Self.example("cache-proxy.conf").map {
            $0.replacing("/run/credentials/cache-proxy.service/purge-token", with: token)
                .replacing("/var/cache/cache-proxy", with: NSTemporaryDirectory())
        }
        let path = try Self.file(lines.joined(separator: "\n"))
        defer { for file in [token, path] { try? FileManager.default.removeItem(atPath: file) } }
        let order = try ConfigurationReader.read(["--config", path, "--check-config"])
        guard case .check(let read) = order else { throw OtherOrder() }
        #expect(read.workers == 4 && read.purgeTokenFile == token)
        #expect(lines.filter { !$0.hasPrefix("#") }.count == 9)
    }

    /// A program of a reload may not read the credentials, and cache-proxy would refuse the token.
    @Test func theReloadInTheUnitForSystemdNeedsNoCredential() throws {
        let lines = try Self.example("cache-proxy.service")
        let hasCredential = lines.contains { $0.hasPrefix("LoadCredential=") }
        let reloads = lines.filter { $0.hasPrefix("ExecReload=") }
        #expect(reloads.contains { $0.contains("kill -HUP") })
        #expect(!hasCredential || !reloads.contains { $0.contains("cache-proxy") })
    }

    @Test func commandLineGoesBeforeTheFile() throws {
        let path = try Self.file("origin http://a\nmemory 32M\n")
        defer { Self.remove(path) }
        guard
            case .run(let read) = try ConfigurationReader.read([
                "--memory", "1M", "--config", path, "--origin", "http://c",
            ])
        else { throw OtherOrder() }
        #expect(read.memory == .megabytes(1))
        #expect(read.origins.map(\.description) == ["http://c"])
    }

    @Test(arguments: [("1M", 1 << 20), ("1048576", 1 << 20), ("99999T", 99_999 << 40)])
    func memoryOfAMebibyteOrMoreIsRead(_ row: (text: String, bytes: Int)) throws {
        let read = try OptionTests.read(["--memory", row.text])
        #expect(read.memory.bytes == row.bytes)
    }

    /// The command line and the file may each give an option once.
    @Test func optionMayBeInTheFileAndOnTheCommandLine() throws {
        let path = try Self.file("origin http://a\norigin http://b\nmemory 32M\nworkers 2\n")
        defer { Self.remove(path) }
        let order = try ConfigurationReader.read(["--config", path, "--workers", "3"])
        guard case .run(let read) = order else { throw OtherOrder() }
        #expect(read.workers == 3 && read.memory == .megabytes(32) && read.origins.count == 2)
    }

    @Test func helpNamesEveryOption() throws {
        guard case .help(let text) = try ConfigurationReader.read(["--help"]) else {
            throw OtherOrder()
        }
        for key in ConfigurationKey.all { #expect(text.contains("--\(key.name) ")) }
    }

    @Test(arguments: [
        ("1.2.3.4:5", "1.2.3.4:5"), (":5", "0.0.0.0:5"), ("*:5", "0.0.0.0:5"),
        ("localhost:5", "127.0.0.1:5"),
        ("[::]:5", "[::]:5"), ("[::1]:5", "[::1]:5"), ("[::ffff:1.2.3.4]:5", "[::ffff:1.2.3.4]:5"),
        ("unix:/a/b", "unix:/a/b"),
    ])
    func addressIsRead(_ row: (String, String)) {
        #expect(ListenAddress(row.0)?.description == row.1)
    }

    static func remove(_ path: String) { try? FileManager.default.removeItem(atPath: path) }

    static func file(_ text: String) throws -> String {
        let path = NSTemporaryDirectory() + "cache-proxy-test-\(UUID().uuidString)"
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }
}
