import CacheEngine
import Foundation
import Testing

@testable import CacheProxy

@Suite struct ConfigurationReaderTests {
    @Test func everyOptionIsRead() throws {
        guard
            case .run(let read) = try ConfigurationReader.read([
                "--listen", "[::1]:9", "--origin", "http://a", "--origin=https://b:1", "--memory",
                "64M",
                "--disk", "/tmp/x", "--disk-size=2GiB", "--workers", "3", "--mode", "private",
                "--admin",
                "unix:/tmp/s", "--access-log", "-", "--name", "me", "--origin-timeout", "1.5",
                "--head-timeout", "2", "--idle-timeout", "3", "--drain-timeout", "4",
                "--connections", "5",
                "--max-content", "6K",
            ])
        else { throw ConfigurationError("not run") }
        #expect(read.listen == .tcp(host: "::1", port: 9))
        #expect(read.origins.map(\.description) == ["http://a", "https://b:1"])
        #expect(read.memory == .megabytes(64) && read.diskSize == .gigabytes(2))
        #expect(read.diskDirectory == "/tmp/x" && read.workers == 3 && read.mode == .private)
        #expect(read.admin == .unix(path: "/tmp/s") && read.accessLog == "-" && read.name == "me")
        #expect(read.originSeconds == 1.5 && read.headSeconds == 2 && read.idleSeconds == 3)
        #expect(
            read.drainSeconds == 4 && read.connectionsMax == 5 && read.contentMax == .kilobytes(6)
        )
    }

    @Test(arguments: [
        ["--origin", "http://a", "--frobnicate"], ["--origin"], ["--origin", "a"], ["x"], [],
        ["--origin", "http://a", "--memory", "12Q"], ["--origin", "http://a", "--memory", "-1"],
        ["--origin", "http://a", "--memory", "0"], ["--origin", "http://a", "--listen", "host:1"],
        ["--origin", "http://a", "--listen", "1.2.3.4:99999"],
        ["--origin", "http://a", "--mode", "x"],
        ["--origin", "http://a", "--workers", "0"],
        ["--origin", "http://a", "--config", "/nonexistent"],
        ["--origin", "http://a", "--purge-token", "/nonexistent"],
        ["--origin", "http://a", "--listen", "127.0.0.1:1", "--admin", "127.0.0.1:1"],
        ["--origin", "http://a", "--memory", "99999999999999999999G"],
    ])
    func mistakeIsOneLine(_ arguments: [String]) async {
        #expect {
            try ConfigurationReader.read(arguments)
        } throws: { error in
            !"\(error)".isEmpty && !"\(error)".contains("\n")
        }
        #expect(await ProxyProgram.run(arguments) == 2)
    }

    @Test func fileHoldsTheSameOptions() throws {
        let path = try Self.file(
            "# a comment\nlisten = 127.0.0.1:7\n\norigin http://a # here\norigin http://b\nmemory\t32M\r\n"
        )
        defer { try? FileManager.default.removeItem(atPath: path) }
        guard
            case .check(let read) = try ConfigurationReader.read([
                "--config", path, "--check-config",
            ])
        else { throw ConfigurationError("not check") }
        #expect(read.listen == .tcp(host: "127.0.0.1", port: 7))
        #expect(read.origins.count == 2 && read.memory == .megabytes(32) && read.file == path)
    }

    @Test func everyOptionIsOnTheProxysPageAndNoOther() throws {
        let page = URL(filePath: #filePath).appending(path: "../../../../docs/cache-proxy.md")
        let text = try String(contentsOf: page.standardized, encoding: .utf8)
        let described = Set(text.matches(of: /`--([a-z-]+)/).map { String($0.1) })
        let known = Set(ConfigurationKey.all.map(\.name) + ["config", "check-config"])
        #expect(described == known)
    }

    @Test func theConfigurationInTheUnitForSystemdIsSound() throws {
        let unit = URL(filePath: #filePath)
            .appending(path: "../../../../Examples/cache-proxy.service")
        let token = try Self.file("0123456789abcdef\n")
        let lines = try String(contentsOf: unit.standardized, encoding: .utf8)
            .split(separator: "\n").filter { $0.hasPrefix("#     ") }
            .map { $0.dropFirst(6).replacing("/etc/cache-proxy.token", with: token) }
        let path = try Self.file(lines.joined(separator: "\n"))
        defer { for file in [token, path] { try? FileManager.default.removeItem(atPath: file) } }
        let order = try ConfigurationReader.read(["--config", path, "--check-config"])
        guard case .check(let read) = order else { throw ConfigurationError("not check") }
        #expect(read.workers == 4 && read.purgeTokenFile == token && lines.count == 9)
    }

    @Test func commandLineGoesBeforeTheFile() throws {
        let path = try Self.file("origin http://a\nmemory 32M\n")
        defer { try? FileManager.default.removeItem(atPath: path) }
        guard
            case .run(let read) = try ConfigurationReader.read([
                "--memory", "1M", "--config", path, "--origin", "http://c",
            ])
        else { throw ConfigurationError("not run") }
        #expect(read.memory == .megabytes(1))
        #expect(read.origins.map(\.description) == ["http://c"])
    }

    @Test func mistakesInAFileNameTheirLine() throws {
        let path = try Self.file("origin http://a\n\nmemroy 3\n")
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect {
            try ConfigurationReader.read(["--config", path])
        } throws: { "\($0)" == "\(path):3: unknown option memroy" }
    }

    @Test func helpNamesEveryOption() throws {
        guard case .help(let text) = try ConfigurationReader.read(["--help"]) else {
            throw ConfigurationError("not help")
        }
        for key in ConfigurationKey.all { #expect(text.contains("--\(key.name) ")) }
    }

    @Test(arguments: [
        ("1.2.3.4:5", "1.2.3.4:5"), (":5", "0.0.0.0:5"), ("*:5", "0.0.0.0:5"),
        ("localhost:5", "127.0.0.1:5"),
        ("[::]:5", "[::]:5"), ("unix:/a/b", "unix:/a/b"),
    ])
    func addressIsRead(_ row: (String, String)) {
        #expect(ListenAddress(row.0)?.description == row.1)
    }

    static func file(_ text: String) throws -> String {
        let path = NSTemporaryDirectory() + "cache-proxy-test-\(UUID().uuidString)"
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }
}
