import Foundation
import Platform

/// A redis-server of one test, with its own directory and port; it ends with the object.
final class RedisServer {
    static let isInstalled = path(of: "redis-server") != nil
    static let remedy = "These tests need redis-server. Please run: perf/setup tests"

    let port: UInt16
    private let directory: URL
    private let words: [String]
    private var process: pid_t?

    /// Starts a server with further words of a command line, such as `--requirepass x`.
    init(_ options: String...) throws {
        port = try FakeServer.freePort()
        directory = try Self.makeDirectory()
        words =
            ["--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--dir"]
            + [directory.path(), "--loglevel", "warning"] + options
        try start()
    }

    /// Starts a sentinel of its own, which watches `master` under the name `m`.
    init(sentinelOf master: RedisServer) throws {
        port = try FakeServer.freePort()
        directory = try Self.makeDirectory()
        let file = directory.appending(path: "sentinel.conf")
        let configuration = """
            port \(port)
            bind 127.0.0.1
            dir \(directory.path())
            sentinel monitor m 127.0.0.1 \(master.port) 1

            """
        try configuration.write(to: file, atomically: true, encoding: .utf8)
        words = [file.path(), "--sentinel"]
        try start()
    }

    private static func makeDirectory() throws -> URL {
        let directory = URL(filePath: NSTemporaryDirectory())
            .appending(path: "cache-engine-redis-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        return directory
    }

    deinit {
        kill()
        try? FileManager.default.removeItem(at: directory)
    }

    var address: String { "127.0.0.1:\(port)" }
    var url: String { "redis://\(address)" }

    /// Starts the server again after `kill`.
    func start() throws {
        guard let program = Self.path(of: "redis-server") else { throw FakeServer.Failure() }
        process = try Self.spawn(program, [program] + words)
    }

    /// Ends the server at once.
    func kill() {
        guard let process else { return }
        Platform.kill(process, SIGKILL)
        var status: Int32 = 0
        waitpid(process, &status, 0)
        self.process = nil
    }

    /// Stops the server's process, which keeps its sockets.
    func stop() { if let process { Platform.kill(process, SIGSTOP) } }

    func resume() { if let process { Platform.kill(process, SIGCONT) } }

    /// The output of redis-cli.
    @discardableResult
    static func command(_ words: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: path(of: "redis-cli") ?? "redis-cli")
        process.arguments = words
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self)
    }

    private static func path(of command: String) -> String? {
        ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map { "\($0)/\(command)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    private static func spawn(_ program: String, _ words: [String]) throws -> pid_t {
        #if canImport(Darwin)
            var actions: posix_spawn_file_actions_t?
        #else
            var actions = posix_spawn_file_actions_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        var arguments = words.map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        var process: pid_t = 0
        let code = posix_spawn(&process, program, &actions, nil, &arguments, environ)
        guard code == 0 else { throw FakeServer.Failure() }
        return process
    }
}
