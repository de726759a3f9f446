import Foundation
import Testing

/// The steps of `docs/operating.md` fit the unit for systemd and the image, which no test starts.
@Suite struct OperatorStepTests {
    private static let configuration = "Examples/cache-proxy.conf"
    private static let unit = "Examples/cache-proxy.service"

    /// The lines that a reader types into a shell.
    private static func steps() throws -> [DocumentedCommand] {
        let path = "docs/operating.md"
        let page = SourceFile(path: path, text: try SourceFile.read(path))
        return DocumentedCommand.all(in: page, programs: [])
    }

    /// The rest of the only line of the file that begins with `start`.
    private static func value(of start: String, in path: String) throws -> String {
        let lines = try SourceFile.read(path).split(separator: "\n").filter { $0.hasPrefix(start) }
        let line = try #require(lines.first)
        #expect(lines.count == 1)
        return String(line.dropFirst(start.count))
    }

    private static func words(of start: String, in path: String) throws -> [String] {
        try value(of: start, in: path).split(separator: " ").map(String.init)
    }

    @Test func everyFileOfTheUnitIsInstalled() throws {
        var modes: [String: String] = [:]
        for step in try Self.steps() where step.program == "install" {
            // install -m MODE SOURCE TARGET
            let words = step.arguments
            try #require(words.count == 4 && words[0] == "-m", "\(step)")
            modes[words[3]] = words[1]
            let source = SourceFile.packageRoot.appending(path: words[2])
            let isMade = words[2].hasPrefix(".build/") || words[2] == "/dev/null"
            #expect(
                isMade || FileManager.default.fileExists(atPath: source.path()),
                "\(step)"
            )
        }
        let start = try Self.words(of: "ExecStart=", in: Self.unit)
        try #require(start.count == 3 && start[1] == "--config")
        let credential = try Self.credential()
        let place = "/etc/systemd/system/cache-proxy.service"
        let wanted = [start[0]: "755", start[2]: "644", credential.file: "600", place: "644"]
        #expect(modes == wanted)
    }

    /// The name of the token for systemd, and the file that it copies.
    private static func credential() throws -> (name: String, file: String) {
        let parts = try value(of: "LoadCredential=", in: unit).split(separator: ":")
        try #require(parts.count == 2)
        return (String(parts[0]), String(parts[1]))
    }

    @Test func theTokenIsWrittenWhereTheUnitReadsIt() throws {
        let credential = try Self.credential()
        let steps = try Self.steps()
        let writing = try #require(steps.first { $0.program == "openssl" })
        #expect(writing.arguments.last == credential.file)
        let copy = try Self.value(of: "purge-token ", in: Self.configuration)
        #expect(copy == "/run/credentials/cache-proxy.service/\(credential.name)")
    }

    /// Another start would meet a mistake in the options, or a missing token, again.
    @Test func theUnitDoesNotRepeatAStartThatFailsForGood() throws {
        let statuses = try Self.words(of: "RestartPreventExitStatus=", in: Self.unit)
        #expect(statuses == ["2", "243"])
    }

    @Test func requestsGoToTheSocketOfTheConfiguration() throws {
        let address = try Self.value(of: "admin ", in: Self.configuration)
        let requests = try Self.steps().filter { $0.words.contains("--unix-socket") }
        #expect(requests.count > 1)
        for request in requests {
            let flag = try #require(request.words.firstIndex(of: "--unix-socket"))
            #expect("unix:\(request.words[flag + 1])" == address, "\(request)")
        }
    }

    /// Before the first start there is neither the copy of the token nor the directory of the disk.
    @Test func theCheckBeforeTheFirstStartSucceeds() async throws {
        let start = try Self.words(of: "ExecStart=", in: Self.unit)
        let token = Self.temporary("token")
        try "0123456789abcdef\n".write(toFile: token, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: token) }
        let places = [
            start[2]: Self.configuration, try Self.credential().file: token,
            "/var/cache/entries": Self.temporary("entries"),
        ]
        let checks = try Self.steps().filter { $0.program == start[0] }
        #expect(checks.count == 1)
        for check in checks {
            #expect(check.words.contains("--check-config"))
            let words = check.arguments.map { places[$0] ?? $0 }
            #expect(Set(places.values).isSubset(of: words), "\(check)")
            let program = ChildProcess.product("cache-proxy")
            let outcome = try await ChildProcess.run([program] + words)
            #expect(outcome.status == 0, "\(outcome.output)")
        }
    }

    /// An option that the image itself gave could not be given again.
    @Test func theImageTakesTheOptionsOfEveryStep() async throws {
        let lines = try SourceFile.read("Examples/Containerfile").split(separator: "\n")
        let place = "/etc/cache-proxy.conf"
        #expect(lines.last == "ENTRYPOINT [\"cache-proxy\", \"--config\", \"\(place)\"]")
        #expect(lines.contains("COPY Examples/container.conf \(place)"))
        #expect(!lines.contains { $0.hasPrefix("CMD ") })
        var count = 0
        for step in try Self.steps() where step.words.starts(with: ["podman", "run"]) {
            let image = try #require(step.words.lastIndex(of: "cache-proxy"))
            let options = step.words[(image + 1)...].map { word in
                word.hasPrefix("/var/cache/cache-proxy/") ? Self.temporary("entries") : word
            }
            let isMounted = step.words.contains { $0.hasSuffix(":\(place):ro") }
            #expect(isMounted == options.isEmpty, "\(step)")
            if isMounted { continue }
            count += 1
            let outcome = try await ChildProcess.run(
                [ChildProcess.product("cache-proxy"), "--config", "Examples/container.conf"]
                    + options + ["--check-config"]
            )
            #expect(outcome.status == 0, "\(step): \(outcome.output)")
        }
        #expect(count >= 3)
    }

    private static func temporary(_ name: String) -> String {
        NSTemporaryDirectory() + "cache-proxy-\(name)-\(UUID().uuidString)"
    }
}
