import Foundation
import Platform
import Testing

@testable import CacheProxy

/// The program itself: exit statuses, signals, and one command from the start to a hit.
@Suite struct ProcessTests {
    /// The program is built beside the test bundle.
    static var program: URL? {
        for bundle in Bundle.allBundles + [Bundle.main] {
            for folder in [bundle.bundleURL, bundle.bundleURL.deletingLastPathComponent()] {
                let place = folder.appending(path: "cache-proxy")
                if FileManager.default.isExecutableFile(atPath: place.path()) { return place }
            }
        }
        return nil
    }

    struct Outcome: Sendable {
        var status: Int32
        var output: String
        var errors: String
    }

    static func run(_ arguments: [String]) async throws -> Outcome {
        let program = try #require(program)
        return try await onThread {
            let process = Process()
            process.executableURL = program
            process.arguments = arguments
            let output = Pipe()
            let errors = Pipe()
            process.standardOutput = output
            process.standardError = errors
            try process.run()
            let text = output.fileHandleForReading.readDataToEndOfFile()
            let complaints = errors.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            return Outcome(
                status: process.terminationStatus,
                output: String(decoding: text, as: UTF8.self),
                errors: String(decoding: complaints, as: UTF8.self)
            )
        }
    }

    @Test func versionHelpAndCheckEndWell() async throws {
        #expect(try await Self.run(["--version"]).output.hasPrefix("cache-proxy "))
        #expect(try await Self.run(["--help"]).output.contains("--origin URL"))
        let check = try await Self.run(["--origin", "http://a", "--check-config"])
        #expect(check.status == 0 && check.errors.isEmpty)
    }

    /// A mistake is status 2; what may pass by itself is status 1, so that a supervisor can try again.
    @Test func failuresAreOneLineAndAStatus() async throws {
        let busy = try WireOrigin { _, _ in .end }
        defer { busy.stop() }
        let usable = ["--origin", "http://a", "--listen"]
        for (arguments, status) in [
            (["--frobnicate"], 2), ([], 2), (["--origin", "http://a", "--memory", "x"], 2),
            (usable + ["127.0.0.1:\(busy.port)"], 1),
            (usable + ["127.0.0.1:0", "--disk", "/dev/null/x"], 2),
            (usable + ["127.0.0.1:0", "--between-bytes-timeout", "1e-10", "--check-config"], 2),
        ] {
            let outcome = try await Self.run(arguments)
            #expect(outcome.status == status, "\(arguments)")
            #expect(
                outcome.errors.split(separator: "\n").count == 1,
                "\(arguments) \(outcome.errors)"
            )
        }
    }

    /// A process that may open few files says that it cannot start, or serves.
    @Test func fewOpenFilesEndTheStartOrLeaveAServer() async throws {
        let program = try #require(Self.program)
        var served = 0
        // With still fewer, the system's libraries end the process.
        for filesMax in [12, 16, 20, 32, 40, 47, 48, 50, 56] {
            let arguments = "--origin http://127.0.0.1:1 --listen 127.0.0.1:0 --workers 2"
            let process = Process()
            process.executableURL = URL(filePath: "/bin/sh")
            process.arguments = [
                "-c", "ulimit -n \(filesMax); exec '\(program.path())' \(arguments)",
            ]
            let errors = Pipe()
            process.standardError = errors
            try process.run()
            defer { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
            let handle = errors.fileHandleForReading
            let line = try await onThread { String(decoding: handle.availableData, as: UTF8.self) }
            if let match = line.firstMatch(of: /Listening on 127\.0\.0\.1:(\d+)/) {
                let port = try #require(UInt16(match.1))
                let clients = try (0..<4).map { _ in try WireClient(port) }
                for client in clients {
                    let answer = try await client.exchange("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                    #expect(answer.status == 502, "\(filesMax) files")
                }
                served += 1
            } else {
                try await onThread { process.waitUntilExit() }
                #expect([1, 2].contains(process.terminationStatus), "\(filesMax) files: \(line)")
                #expect(line.hasPrefix("cache-proxy: "), "\(filesMax) files: \(line)")
            }
        }
        #expect(served == 3)
    }

    @Test func signalDrainsAndEndsTheProgram() async throws {
        let origin = try WireOrigin { request, socket in
            try socket.answer(200, ["Cache-Control: max-age=60"], "\(request.number)")
        }
        defer { origin.stop() }
        let program = try #require(Self.program)
        let process = Process()
        process.executableURL = program
        process.arguments = [
            "--listen", "127.0.0.1:0", "--origin", "http://127.0.0.1:\(origin.port)",
        ]
        let errors = Pipe()
        process.standardError = errors
        try process.run()
        defer { if process.isRunning { process.terminate() } }
        let handle = errors.fileHandleForReading
        let first = try await onThread { String(decoding: handle.availableData, as: UTF8.self) }
        let port = try #require(
            first.firstMatch(of: /127\.0\.0\.1:(\d+)/).flatMap { UInt16($0.1) }
        )
        let client = try WireClient(port)
        for _ in 0..<2 {
            #expect(try await client.exchange("GET / HTTP/1.1\r\nHost: x\r\n\r\n").text == "0")
        }
        kill(process.processIdentifier, SIGHUP)
        let second = try await onThread { String(decoding: handle.availableData, as: UTF8.self) }
        #expect(second.contains("Read the configuration again"))
        kill(process.processIdentifier, SIGTERM)
        #expect(try await client.isClosed())
        let rest = try await onThread {
            let data = handle.readDataToEndOfFile()
            process.waitUntilExit()
            return String(decoding: data, as: UTF8.self)
        }
        #expect(rest.contains("Ended") && process.terminationStatus == 0)
    }

    /// `timeout` sends its signal to the process and to the group; the second one here is another,
    /// because the system may merge equal ones.
    @Test func signalThatComesTwiceCutsNoResponse() async throws {
        let gate = TurnStile()
        let origin = try WireOrigin { _, socket in
            gate.wait()
            return try socket.answer(200, [], "whole")
        }
        defer { origin.stop() }
        let program = try await RunningProgram([
            "--origin", "http://127.0.0.1:\(origin.port)", "--drain-timeout", "86400",
        ])
        let client = try WireClient(program.port)
        try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(await eventually { origin.count == 1 })
        program.signal(SIGINT)
        program.signal(SIGTERM)
        #expect(try await program.says("the signal to end came twice"))
        program.signal(SIGHUP)
        #expect(try await program.says("the configuration is not read again"))
        program.signal(SIGUSR1)
        #expect(try await program.says("the access log is opened again"))
        gate.pass()
        #expect(try await client.response().text == "whole")
        #expect(try await program.end(0) == 0)
    }

    /// The lines are more than the pipe and the proxy hold.
    @Test func standardOutputThatIsNotReadDelaysNoRequest() async throws {
        let origin = try WireOrigin { _, socket in
            try socket.answer(200, ["Cache-Control: max-age=60"], "x")
        }
        defer { origin.stop() }
        let output = Pipe()
        let program = try await RunningProgram(
            ["--origin", "http://127.0.0.1:\(origin.port)", "--access-log", "-"],
            output: output
        )
        let client = try WireClient(program.port)
        let query = String(repeating: "q", count: 4_000)
        for _ in 0..<600 {
            let answer = try await client.exchange("GET /?\(query) HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(answer.text == "x")
        }
        #expect(try await program.end() == 0)
        withExtendedLifetime(output) {}
    }

    @Test func userSignalsDoNotEndTheProgram() async throws {
        let origin = try WireOrigin { _, socket in try socket.answer(200, [], "x") }
        defer { origin.stop() }
        let log = NSTemporaryDirectory() + "cache-proxy-log-\(UUID().uuidString)"
        defer { for path in [log, log + ".1"] { ConfigurationReaderTests.remove(path) } }
        let program = try await RunningProgram([
            "--origin", "http://127.0.0.1:\(origin.port)", "--access-log", log,
        ])
        program.signal(SIGUSR2)
        let client = try WireClient(program.port)
        let get = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
        #expect(try await client.exchange(get).text == "x")
        // The line is written after the last byte of the response.
        let isLogged = await eventually {
            (try? String(contentsOfFile: log, encoding: .utf8))?.contains("GET /a") == true
        }
        #expect(isLogged)
        try FileManager.default.moveItem(atPath: log, toPath: log + ".1")
        program.signal(SIGUSR1)
        #expect(await eventually { FileManager.default.fileExists(atPath: log) })
        #expect(try await client.exchange(get).text == "x")
        #expect(try await program.end() == 0)
        for path in [log, log + ".1"] {
            #expect(try String(contentsOfFile: path, encoding: .utf8).contains("GET /a"))
        }
    }

    @Test func logIsOpenedAgainThoughTheConfigurationIsInvalid() async throws {
        let log = NSTemporaryDirectory() + "cache-proxy-log-\(UUID().uuidString)"
        let file = try ConfigurationReaderTests.file(
            "origin http://127.0.0.1:1\naccess-log \(log)\n"
        )
        defer { for path in [log, log + ".1", file] { ConfigurationReaderTests.remove(path) } }
        let program = try await RunningProgram(["--config", file])
        try FileManager.default.moveItem(atPath: log, toPath: log + ".1")
        try "no such option\n".write(toFile: file, atomically: false, encoding: .utf8)
        program.signal(SIGHUP)
        #expect(try await program.says("Kept the old configuration"))
        #expect(FileManager.default.fileExists(atPath: log))
        #expect(try await program.end() == 0)
    }
}
