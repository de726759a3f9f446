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
    var certificateFile: String { directory.appending(path: "server.pem").path() }
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
        for arguments in commands { try Self.openssl(arguments, in: directory) }
    }

    /// Runs a command of openssl in `directory`, and returns its output.
    @discardableResult
    static func openssl(_ arguments: [String], in directory: URL) throws -> String {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(filePath: try path(of: "openssl"))
        process.arguments = arguments
        process.currentDirectoryURL = directory
        process.standardError = FileHandle.nullDevice
        process.standardOutput = output
        try process.run()
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Failure(description: "openssl \(arguments[0]) failed")
        }
        return String(decoding: text, as: UTF8.self)
    }
}

/// A server's authority among those of the system, found by the hash of its name.
struct SystemAuthority {
    private static let folder = URL(filePath: "/etc/ssl/certs")
    private let link: URL

    static var canBeAdded: Bool {
        geteuid() == 0 && FileManager.default.fileExists(atPath: folder.path())
    }

    /// Removes the authority's key first, so that nobody can sign by it if the link stays.
    init(from server: NginxServer) throws {
        let files = FileManager.default
        try files.removeItem(at: server.directory.appending(path: "ca.key"))
        let hash = try NginxServer.openssl(
            ["x509", "-hash", "-noout", "-in", "ca.pem"],
            in: server.directory
        )
        link = Self.folder.appending(
            path: hash.trimmingCharacters(in: .whitespacesAndNewlines) + ".0"
        )
        try? files.removeItem(at: link)
        try files.createSymbolicLink(
            at: link,
            withDestinationURL: URL(filePath: server.authorityFile)
        )
    }

    func remove() { try? FileManager.default.removeItem(at: link) }
}
