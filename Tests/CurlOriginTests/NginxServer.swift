import Foundation

#if canImport(Glibc)
    import Platform
#endif

/// An nginx of one test, with its own directory, certificate and port; it ends with the object.
///
/// The listening socket is made here and inherited, so the system chooses the port and the first
/// request need not wait.
final class NginxServer {
    let port: UInt16
    /// All files that the server reads and writes.
    let directory: URL
    private let process: pid_t

    /// The file of the authority that signed the server's certificate.
    var authorityFile: String { directory.appending(path: "ca.pem").path() }
    var baseURL: String { "https://127.0.0.1:\(port)" }

    init(locations: String) throws {
        directory = try Self.makeDirectory()
        let (listener, port) = try Self.listen()
        defer { close(listener) }
        self.port = port
        try Self.makeCertificates(in: directory)
        let configuration = Self.configuration(directory.path(), port: port, locations: locations)
        let file = directory.appending(path: "nginx.conf")
        try configuration.write(to: file, atomically: true, encoding: .utf8)
        process = try Self.start(
            try Self.path(of: "nginx"),
            ["-p", directory.path(), "-e", "error.log", "-c", file.path()],
            environment: ["NGINX=3;"],
            inherited: listener
        )
    }

    deinit {
        kill(process, SIGTERM)
        var status: Int32 = 0
        waitpid(process, &status, 0)
        try? FileManager.default.removeItem(at: directory)
    }

    func write(_ bytes: Data, to name: String) throws {
        try bytes.write(to: directory.appending(path: "www/" + name))
    }

    private static func makeDirectory() throws -> URL {
        let directory = URL(filePath: NSTemporaryDirectory())
            .appending(path: "cache-engine-nginx-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: directory.appending(path: "www"),
            withIntermediateDirectories: true
        )
        return directory
    }

    private static func configuration(_ directory: String, port: UInt16, locations: String)
        -> String
    {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path temp_\($0);" }.joined(separator: "\n")
        return """
            daemon off;
            worker_processes 1;
            \(geteuid() == 0 ? "user root;" : "")
            pid nginx.pid;
            events { worker_connections 4096; }
            http {
                access_log off;
                \(temporary)
                http2_max_concurrent_streams 128;
                keepalive_requests 1000000;
                server {
                    listen 127.0.0.1:\(port) ssl http2;
                    ssl_certificate \(directory)/server.pem;
                    ssl_certificate_key \(directory)/server.key;
                    root \(directory)/www;
                    \(locations)
                }
            }
            """
    }

    // MARK: - System calls

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private static func path(of command: String) throws -> String {
        for folder in ["/usr/sbin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"] {
            let path = "\(folder)/\(command)"
            if FileManager.default.isExecutableFile(atPath: path) { return path }
        }
        throw Failure(description: "These tests need \(command). Please run: perf/setup tests")
    }

    private static func makeCertificates(in directory: URL) throws {
        let openssl = try path(of: "openssl")
        let extensions = directory.appending(path: "extensions")
        try "subjectAltName=IP:127.0.0.1".write(to: extensions, atomically: true, encoding: .utf8)
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        let commands = [
            ["req", "-x509", "-days", "2", "-subj", "/CN=test authority"] + key
                + ["-keyout", "ca.key", "-out", "ca.pem"],
            ["req", "-subj", "/CN=127.0.0.1"] + key + [
                "-keyout", "server.key", "-out", "server.csr",
            ],
            [
                "x509", "-req", "-days", "2", "-in", "server.csr", "-CA", "ca.pem", "-CAkey",
                "ca.key", "-CAcreateserial", "-extfile", "extensions", "-out", "server.pem",
            ],
        ]
        for arguments in commands {
            let process = Process()
            process.executableURL = URL(filePath: openssl)
            process.arguments = arguments
            process.currentDirectoryURL = directory
            process.standardError = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            guard process.terminationStatus == 0 else {
                throw Failure(description: "openssl \(arguments[0]) failed")
            }
        }
    }

    private static func listen() throws -> (socket: Int32, port: UInt16) {
        let listener = socket(AF_INET, streamSocketType, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && Platform.listen(listener, 1024) == 0
                    && getsockname(listener, address, &length) == 0
            }
        }
        guard isListening else { throw Failure(description: "No socket: errno \(errno)") }
        return (listener, UInt16(bigEndian: address.sin_port))
    }

    /// Starts a program with `inherited` as its descriptor 3.
    private static func start(
        _ path: String,
        _ arguments: [String],
        environment: [String],
        inherited: Int32
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // Via another number: a descriptor duplicated onto itself would stay closed on exec.
        posix_spawn_file_actions_adddup2(&actions, inherited, 1000)
        posix_spawn_file_actions_adddup2(&actions, 1000, 3)
        posix_spawn_file_actions_addclose(&actions, 1000)
        var words = ([path] + arguments).map { strdup($0) } + [nil]
        var variables = environment.map { strdup($0) } + [nil]
        defer { (words + variables).forEach { free($0) } }
        var process: pid_t = 0
        let code = posix_spawn(&process, path, &actions, nil, &words, &variables)
        guard code == 0 else { throw Failure(description: "nginx did not start: \(code)") }
        return process
    }
}
