import Foundation

/// Checks whether a documented command works.
///
/// A quick command is run as it is. For a command that builds or measures, its help or a dry run is
/// checked, and the work itself must be part of `make check` or `.ci/run`.
struct CommandProof {
    /// The programs that a document may name; lines with other programs would be untested.
    static let programs: Set<String> = [
        "make", "swift", "bench-cli", "cache-proxy", "curl", "perf/compare", "perf/profile",
        "perf/soak", "Fuzz/run", "Examples/Fleet/fleet",
    ]

    /// A substitute for a command that no script runs.
    enum StandIn {
        /// A target that does the same with less work.
        case target(String)
        /// A suite of tests.
        case suite(String)
    }

    static let standIns: [String: StandIn] = [
        // It writes files.
        "make format": .target("lint"),
        // Its traces are not in the tree.
        "perf/compare hit-ratio": .suite("ReplayHitRatioTests"),
        // The check runs the same tests with fewer rounds.
        "make fleet": .suite("PurgeLogFaultTests"),
    ]

    private let makefile: Makefile
    private let longRuns: LongRuns
    private let manifest: String
    private let tests: String

    init() throws {
        makefile = try Makefile()
        longRuns = try LongRuns()
        manifest = try SourceFile.read("Package.swift")
        tests = try SourceFile.all(in: ["Tests"]).map(\.text).joined(separator: "\n")
    }

    /// Returns the fault of the command; `nil` if it works.
    func complaint(about command: DocumentedCommand) async throws -> String? {
        switch command.program {
        case "make": try await make(command.arguments)
        case "swift": try await swift(command.arguments)
        case "bench-cli": try await bench(command.arguments)
        case "cache-proxy": try await proxy(command.arguments)
        case "curl": curl(command)
        case "install", "openssl", "systemctl", "journalctl", "podman",
            "/usr/local/bin/cache-proxy":
            step(command)
        case "perf/compare", "perf/profile", "perf/soak", "Fuzz/run":
            try await script(command.program, command.arguments)
        case "Examples/Fleet/fleet": try await fleet(command)
        default: "no proof knows \(command.program)"
        }
    }

    private func make(_ arguments: [String]) async throws -> String? {
        let targets = arguments.filter { !$0.contains("=") && !$0.hasPrefix("-") }
        for target in targets where target != "help" {
            guard makefile.prerequisites[target] != nil else { return "no target \(target)" }
            if makefile.isMadeByCheck(target) { continue }
            guard isDone("make", target) else { return "nothing does what \(target) does" }
        }
        let isHelp = targets == ["help"]
        let outcome = try await ChildProcess.run(["make"] + (isHelp ? [] : ["-n"]) + arguments)
        let isEmpty = outcome.output.contains("Nothing to be done")
        return outcome.status == 0 && !isEmpty ? nil : outcome.output
    }

    /// Whether `.ci/run` executes it, or a stand-in replaces it.
    private func isDone(_ program: String, _ word: String?) -> Bool {
        if longRuns.contain(program, word) { return true }
        return switch Self.standIns["\(program) \(word ?? "")"] {
        case .target(let other): makefile.isMadeByCheck(other)
        case .suite(let suite): tests.contains("struct \(suite)")
        case nil: false
        }
    }

    private func swift(_ arguments: [String]) async throws -> String? {
        if arguments.first == "build", arguments.contains("--product") {
            let line = "build " + arguments.dropFirst().joined(separator: " ")
            return makefile.text.contains(line) ? nil : "no target of the Makefile runs it"
        }
        var rest = arguments.dropFirst()
        if rest.starts(with: ["-c", "release"]) { rest = rest.dropFirst(2) }
        guard arguments.first == "run", let product = rest.first,
            manifest.contains(".executableTarget(name: \"\(product)\"")
                || manifest.contains("name: \"\(product)\",")
        else { return "the package has no such program" }
        if product == "cache-proxy" { return try await proxy(Array(rest.dropFirst())) }
        let isRun = tests.contains("ExampleProgram(\"\(product)\"")
        return isRun ? nil : "no test runs \(product)"
    }

    private func bench(_ arguments: [String]) async throws -> String? {
        let program = ChildProcess.product("bench-cli")
        guard let name = arguments.first, name != name.uppercased() else {
            return try await failure(of: [program, "--help"])
        }
        return try await help(of: [program, name], mentions: arguments.dropFirst().filter(isFlag))
    }

    private func proxy(_ arguments: [String]) async throws -> String? {
        let program = ChildProcess.product("cache-proxy")
        return try await failure(of: [program] + arguments + ["--check-config"])
    }

    /// A test of the proxy sends the documented requests to the administration.
    private func curl(_ command: DocumentedCommand) -> String? {
        let isCarriedOut =
            ["docs/cache-proxy.md", "docs/operating.md"].contains(command.document)
            && tests.contains("func everyDocumentedRequestIsAnswered(")
        return isCarriedOut ? nil : "no test carries it out"
    }

    /// A suite compares the steps of an operator with the files that they install.
    private func step(_ command: DocumentedCommand) -> String? {
        let suite = "OperatorStepTests"
        let isCompared =
            command.document == "docs/operating.md" && tests.contains("struct \(suite)")
        return isCompared ? nil : "no test compares it with an example"
    }

    /// A test runs each command with the real HAProxy.
    private func fleet(_ command: DocumentedCommand) async throws -> String? {
        for word in command.arguments.filter(isOwnWord).prefix(1)
        where !tests.contains("run(\"\(word)\"") { return "no test runs \(word)" }
        return try await help(of: [command.program], mentions: command.arguments.filter(isFlag))
    }

    private func script(_ program: String, _ arguments: [String]) async throws -> String? {
        if let failure = try await failure(of: ["bash", "-n", program]) { return failure }
        if program == "perf/profile", let workload = arguments.first(where: isOwnWord) {
            let list = try await ChildProcess.run([ChildProcess.product("bench-cli"), "list"])
            if !("\n" + list.output).contains("\n\(workload) ") { return "no workload \(workload)" }
            guard isDone(program, nil) else { return "nothing runs it" }
            return try await help(of: [program], mentions: arguments.filter(isFlag))
        }
        if program == "Fuzz/run" {
            let unknown = arguments.filter(isOwnWord).first {
                !FileManager.default.fileExists(
                    atPath: SourceFile.packageRoot.appending(path: "Fuzz/Targets/\($0).swift")
                        .path()
                )
            }
            if let unknown { return "no target \(unknown)" }
            return isDone("make", "fuzz") ? nil : "nothing runs it"
        }
        let word = program == "perf/compare" ? arguments.first(where: isOwnWord) : nil
        guard isDone(program, word) else { return "nothing runs it" }
        return try await help(
            of: [program],
            mentions: arguments.filter { isFlag($0) || isOwnWord($0) }
        )
    }

    private func help(of words: [String], mentions wanted: [String]) async throws -> String? {
        let outcome = try await ChildProcess.run(words + ["--help"])
        guard outcome.status == 0 else { return outcome.output }
        return wanted.first { !outcome.output.contains($0) }.map { "its help does not know \($0)" }
    }

    private func failure(of words: [String]) async throws -> String? {
        let outcome = try await ChildProcess.run(words)
        return outcome.status == 0 ? nil : outcome.output
    }

    private func isFlag(_ word: String) -> Bool { word.hasPrefix("-") }

    /// Whether the program must know the word: it is no flag, no value and no placeholder.
    private func isOwnWord(_ word: String) -> Bool {
        !isFlag(word) && word.wholeMatch(of: /[a-z][a-z-]*/) != nil
    }
}

/// The targets of the Makefile, and which of them `make check` makes.
private struct Makefile {
    let text: String
    let prerequisites: [String: [String]]
    private let madeByCheck: Set<String>

    init() throws {
        let place = SourceFile.packageRoot.appending(path: "Makefile")
        text = try String(contentsOf: place, encoding: .utf8)
        var prerequisites: [String: [String]] = [:]
        for match in text.matches(of: /(?m)^([a-z-]+):(?!=)([^#\n]*)/) {
            prerequisites[String(match.1)] = match.2.split(separator: " ").map(String.init)
        }
        self.prerequisites = prerequisites
        var made: Set<String> = []
        var waiting = ["check"]
        while let target = waiting.popLast() {
            if made.insert(target).inserted { waiting += prerequisites[target] ?? [] }
        }
        madeByCheck = made
    }

    /// Whether `make check` makes the target, or everything that an alias stands for.
    func isMadeByCheck(_ target: String) -> Bool {
        if madeByCheck.contains(target) { return true }
        let parts = prerequisites[target] ?? []
        return !parts.isEmpty && !hasRecipe(target) && parts.allSatisfy(isMadeByCheck)
    }

    private func hasRecipe(_ target: String) -> Bool {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard let rule = lines.firstIndex(where: { $0.hasPrefix("\(target):") }) else {
            return false
        }
        return lines[rule + 1].hasPrefix("\t")
    }
}
