import CacheTestSupport
import Foundation
import Platform

/// One cache-proxy of a fleet in a process of its own; it can be killed and started again on its
/// disk, with its ports.
final class ProxyProcess {
    let port: UInt16
    let admin: UInt16
    private let name: String
    private let folder = TemporaryFolder()
    private let arguments: [String]
    /// `nil` for the clock of the machine.
    private let clock: FakeClock?
    private var process: Process?

    static let token = "secret-word"

    /// Starts the program, and waits until it answers.
    init(
        _ name: String,
        origin: UInt16,
        fleet: String,
        hasDisk: Bool = false,
        revalidates: Bool = true,
        secondsAhead: Int? = nil
    ) async throws {
        self.name = name
        port = try FreePort.next()
        admin = try FreePort.next()
        clock = secondsAhead.map { FakeClock(secondsAhead: $0) }
        let token = folder.path + "/token"
        try Self.token.write(toFile: token, atomically: true, encoding: .utf8)
        let disk = hasDisk ? ["--disk", folder.path + "/cache", "--disk-size", "64M"] : []
        arguments =
            disk + [
                "--listen", "127.0.0.1:\(port)", "--admin", "127.0.0.1:\(admin)", "--name", name,
                "--origin", "http://127.0.0.1:\(origin)", "--purge-token", token, "--memory", "8M",
                "--fleet", fleet, "--fleet-share", "entries", "--fleet-purge-lag", "1",
                "--fleet-cut-off", revalidates ? "revalidate" : "serve",
            ]
        try await start()
    }

    deinit { kill() }

    func start() async throws {
        guard let program = ProcessTests.program else { throw WireFailure("no cache-proxy") }
        let started = Process()
        started.executableURL = program
        started.arguments = arguments
        if let clock {
            let own = try clock.environment(in: folder)
            started.environment = ProcessInfo.processInfo.environment.merging(own) { $1 }
        }
        let lines = FileHandle(forWritingAtPath: logPath())
        _ = try lines?.seekToEnd()
        started.standardError = lines
        try started.run()
        process = started
        let isUp = await eventually { (try? await self.metric("proxy_connections_open")) != nil }
        guard isUp else { throw WireFailure("\(name) does not answer: \(log)") }
    }

    /// Ends the process at once.
    func kill() {
        guard let process else { return }
        Platform.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        self.process = nil
    }

    func stop() { signal(SIGSTOP) }
    func resume() { signal(SIGCONT) }

    private func signal(_ number: Int32) {
        if let process { Platform.kill(process.processIdentifier, number) }
    }

    // MARK: What it tells

    /// The lines that it has written.
    var log: String { (try? String(contentsOfFile: folder.path + "/log", encoding: .utf8)) ?? "" }

    private func logPath() -> String {
        let path = folder.path + "/log"
        if !FileManager.default.fileExists(atPath: path) {
            _ = FileManager.default.createFile(atPath: path, contents: nil)
        }
        return path
    }

    var residentBytes: Int {
        process.map { FootprintTests.residentBytes($0.processIdentifier) } ?? 0
    }

    /// The open files and sockets.
    var descriptorCount: Int {
        guard let process else { return 0 }
        let path = "/proc/\(process.processIdentifier)/fd"
        return (try? FileManager.default.contentsOfDirectory(atPath: path).count) ?? 0
    }

    func metric(_ metric: String) async throws -> Int {
        let text = try await WireClient(admin).exchange(
            "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
        ).text
        let line = text.split(separator: "\n").first { $0.hasPrefix(metric + " ") }
        guard let number = line.flatMap({ Int($0.dropFirst(metric.utf8.count + 1)) }) else {
            throw WireFailure("\(name) has no \(metric)")
        }
        return number
    }

    /// Waits until a metric has this value.
    func reaches(_ value: Int, _ name: String) async -> Bool {
        await eventually { (try? await metric(name)) == value }
    }

    /// The status and the JSON of a purge.
    func purge(_ target: String, _ fields: String) async throws -> (Int, [String: Any]) {
        let response = try await WireClient(admin).exchange(
            "PURGE \(target) HTTP/1.1\r\nHost: fleet.test\r\n"
                + "Authorization: Bearer \(Self.token)\r\n\(fields)\r\n"
        )
        let content = try? JSONSerialization.jsonObject(with: Data(response.body))
        return (response.status, content as? [String: Any] ?? [:])
    }
}
