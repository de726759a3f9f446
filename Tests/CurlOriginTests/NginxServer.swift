import CacheTestSupport
import Foundation
import Platform

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
        let (listener, port) = try LoopbackSocket.listen()
        defer { close(listener) }
        self.port = port
        try Self.makeCertificates(in: directory)
        let configuration = Self.configuration(directory.path(), port: port, locations: locations)
        let file = directory.appending(path: "nginx.conf")
        try configuration.write(to: file, atomically: true, encoding: .utf8)
        process = try ChildProgram.start(
            try Self.path(of: "nginx"),
            ["-p", directory.path(), "-e", "error.log", "-c", file.path()],
            variables: ["NGINX=3;"],
            inherited: listener
        )
    }

    deinit {
        kill(process, SIGTERM)
        ChildProgram.wait(for: process)
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

    // MARK: - Programs

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
}
